"""The estimate of a run: it guides the search, and is compared with the result. Its failure is only logged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import DeviceUnavailable, EngineError, TimeIsUp
from ..facts.result import DeviceFacts, RunResult
from ..search.guided import ExpectedMemory, decide
from ..search.unguided import Found, SearchLimits, Trial, Try
from ..settings.spec import RunSpec
from .batch_model import BatchModel
from .calibration import Calibration
from .prior import PriorEstimate, graded
from .types import Estimate

TRACE_SECONDS = 60.0  # time limit of a trace: a longer one would not save as much time

T = TypeVar("T")


class EstimateGuide:
    """The expected memory of a run, if it can be estimated. `log` is called with the reason when that fails."""

    def __init__(self, spec: RunSpec, calibration: Calibration | None, log: Callable[[str, str], None]) -> None:
        self.spec = spec
        self.calibration = calibration
        self.log = log
        self.seconds = 0.0
        self._model: BatchModel | None = None
        self._prior: PriorEstimate | None = None
        self._expected: ExpectedMemory | None = None

    def trace(self, trace: Callable[[float], dict[str, Any]], seconds_left: float) -> None:
        seconds = min(TRACE_SECONDS, seconds_left)
        if seconds > 0:
            self._model = self._best_effort(lambda: BatchModel.from_dict(trace(seconds)))

    def estimate(self, device: DeviceFacts, environment: dict[str, Any]) -> Estimate | None:
        if (model := self._model) is None:
            return None
        before = time.monotonic()
        self._prior = self._best_effort(
            lambda: PriorEstimate.of(self.spec, device, environment, model, self.seconds, self.calibration)
        )
        self.seconds += time.monotonic() - before
        return None if self._prior is None else self._prior.estimate

    def start(self) -> None:
        if self._prior is not None and self.spec.start_batch_size is None:
            self._expected = self._prior.expectation()

    def decide(self, trials: Sequence[Trial], limits: SearchLimits) -> Try | Found:
        if (expected := self._expected) is not None:
            step = self._best_effort(lambda: decide(trials, limits, expected))
            if step is not None:
                return step
            self._expected = None
        return decide(trials, limits, None)

    def graded(self, result: RunResult) -> RunResult:
        if (prior := self._prior) is None:
            return result
        return self._best_effort(lambda: graded(result, prior)) or result

    def _best_effort(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except DeviceUnavailable:
            raise  # without the worker nothing can be measured either
        except (EngineError, TimeIsUp) as exc:
            reason = str(exc)
        except Exception as exc:  # noqa: BLE001 - a failure of the predictor must not fail the run
            reason = f"{type(exc).__name__}: {exc}"
        self.log(f"continuing without an estimate: {reason}", "warning")
        return None
