"""A worker for a race, with made-up speeds and losses, and races with it."""

from typing import Any

import pytest

from engine.errors import TimeIsUp, WorkerFailed
from engine.facts.losses import Losses
from engine.facts.result import Outcome, Probe
from engine.machine.execution import Execution
from engine.questions.faster.result import FasterResult
from engine.questions.faster.run import race
from engine.questions.faster.spec import FasterSpec
from engine.race.speed.comparison import TimedBlock
from engine.settings.spec import RunSpec
from tests.engine.fake_worker import FakeWorker

LOSSES = (2.0, 1.5, 1.2, 1.1, 1.0)


class FakeRacer(FakeWorker):
    """Steps of `factors` by setting; `losses_of` has others; `fails` raise, `never_ready` hang.

    `ends_after`: the time of the run, in blocks.
    """

    def __init__(self, **changed: Any) -> None:
        self.factors: dict[str, float] = changed.pop("factors", {})
        self.losses_of: dict[str, tuple[float, ...]] = changed.pop("losses_of", {})
        self.fails: frozenset[str] = changed.pop("fails", frozenset())
        self.never_ready: frozenset[str] = changed.pop("never_ready", frozenset())
        self.spec: RunSpec | None = None
        self.blocks = 0
        self.ends_after: int = changed.pop("ends_after", 10_000)
        super().__init__(changed.pop("boundary", 16), **changed)

    def turn_to(self, spec: RunSpec) -> None:
        self.close()
        self.spec = spec

    @property
    def is_time_up(self) -> bool:
        return self.blocks > self.ends_after

    def _made(self) -> set[str]:
        made = {"fused": self.spec.optimizer == "adamw-fused", "bf16": self.spec.precision == "bf16"}  # type: ignore[union-attr]
        made |= {"compile": self.spec.torch_compile, "checkpointing": self.spec.gradient_checkpointing}  # type: ignore[union-attr]
        return {name for name, is_made in made.items() if is_made}

    def time(self, batch_size: int, **_: Any) -> TimedBlock:
        self.blocks += 1
        if self.is_time_up:
            raise TimeIsUp
        made = self._made()
        if made & self.never_ready:
            raise TimeIsUp
        if made & self.fails:
            raise WorkerFailed("the worker process ended with status -11")
        step = self.step_seconds(batch_size)
        for name in made:
            step /= self.factors.get(name, 1.0)
        step *= 1 + 0.002 * (self.blocks % 5)
        conditions = {"others_cores": self.others_cores, **({"compile_seconds": 12.0} if "compile" in made else {})}
        return TimedBlock(batch_size, Outcome.FITS, (step,), step, conditions)

    def losses(self, batch_size: int, **_: Any) -> Losses:
        if batch_size > 16:
            return Losses(Outcome.OUT_OF_MEMORY, error_type="BudgetExceeded", error_message="out of memory")
        return Losses(
            Outcome.FITS, next((self.losses_of[name] for name in self._made() & self.losses_of.keys()), LOSSES)
        )

    def probe(self, batch_size: int, **asked: Any) -> Probe:
        asked.setdefault("progress", lambda *_: None)
        return super().probe(batch_size, **asked)


def raced(spec: FasterSpec | None = None, **changed: Any) -> tuple[FasterResult, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    spec = spec or FasterSpec(
        model="bert-tiny", device="cpu", tried="fused,bf16,compile,checkpointing", current_batch_size=4
    )
    racer = FakeRacer(**changed)
    with pytest.MonkeyPatch.context() as patch:
        left = property(lambda each: 0.0 if racer.is_time_up else each.time_budget_seconds - each.seconds)
        patch.setattr(Execution, "seconds_left", left)
        return race(spec, events.append, worker=racer, started_as={}), events


FAST = {"fused": 1.3, "bf16": 1.5, "checkpointing": 0.8}
