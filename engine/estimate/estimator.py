"""Estimates one spec for many cards, a trace for each kind. A trace patches torch: run it in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from ..errors import EstimateImpossible, SpecError
from ..machine.execution import Emit, Execution
from ..settings.lora_targets import describe_targets
from ..settings.spec import RunSpec
from .attention_family import FAMILIES, Family, family_of
from .batch_model import BatchModel
from .frontier import Frontier, frontier_of, grid_of, specs_of
from .gpus import Gpu
from .largest import Largest, LargestOf, candidates_of, largest_of
from .predict import check, estimate
from .replay import Replays
from .smallest_card import smallest_gpu
from .stored import stored_traces
from .stored.packed_trace import StoredTrace
from .types import Estimate
from .what_to_change import Evaluated, Scope, WhatToChange, what_to_change

Answer = WhatToChange | Frontier | Largest
NOT_SHIPPED = (
    "without torch, models of the catalogue are estimated at their usual input size, in fp32 or bf16, with gradient "
    "checkpointing or not, language models also with LoRA of rank 16, on plain or 4-bit weights; these are others"
)


class Estimator:
    """Estimates one spec. `emit` is called with each event; `answers` has what else was asked, by its name.

    `changeable` are the settings that what to change may be; None: all.
    """

    def __init__(
        self, spec: RunSpec, *, emit: Emit = lambda _: None, changeable: Collection[str] | None = None
    ) -> None:
        self._spec, self._changeable = spec, changeable
        self._execution = Execution(emit)
        self._replays: dict[Family | None, Replays] = {}
        self._stored: list[tuple[StoredTrace, int]] = []
        """The traces, each with the number of outcomes that its file has."""
        self.versions = stored_traces.versions()
        self.answers: dict[str, Answer] = {}

    def estimates(
        self,
        gpus: Sequence[Gpu | None],
        batch_sizes: tuple[int, ...] = (),
        scope: Scope | None = None,
        input_sizes: Sequence[int] = (),
        largest: LargestOf | None = None,
    ) -> list[Estimate]:
        """Estimate each card that can do what is requested (None is the CPU). Raises SpecError where none can.

        For one card also what `scope`, `input_sizes` and `largest` ask for the first of `batch_sizes`, or today's.
        """
        asked: dict[str, tuple[Any, Callable[..., Answer]]] = {
            "what_to_change": (scope, self._what_to_change),
            "frontier": (input_sizes, self._frontier),
            "largest": (largest, self._largest),
        }
        asked = {name: question for name, question in asked.items() if question[0]}
        if asked and len(gpus) != 1:
            raise SpecError(next(iter(asked)), "is for one GPU: name it")
        if largest is not None:
            candidates_of(self._spec, largest)  # refuses before anything is traced
        ids = ["cpu" if gpu is None else gpu.id for gpu in gpus]
        self._execution.begin(self._spec, gpus=ids)
        if (layers := describe_targets(self._spec.lora_targets, self._spec.workload)) is not None:
            self._execution.log(layers)
        able = self._able(gpus)
        for gpu in able:
            self._replays_for(gpu)
        self._execution.phase("predicting", cards=len(able))
        traced_seconds = self._execution.seconds
        # for one card the result says what would fill it; for many, each would have as long a list
        explains = len(able) == 1
        estimates = [self._estimate(gpu, batch_sizes, traced_seconds, explains=explains) for gpu in able]
        result: dict[str, Any] = {"estimates": [made.to_dict() for made in estimates]}
        wanted = batch_sizes[0] if batch_sizes else self._spec.current_batch_size
        if len(estimates) > 1:
            result["smallest_gpu"] = smallest_gpu(estimates, wanted)
        for name, (how, question) in asked.items():
            self.answers[name] = question(how, able[0], estimates[0], wanted)
            result[name] = self.answers[name].to_dict()
        self._execution.end(result)
        self._keep()
        return estimates

    @property
    def seconds(self) -> float:
        return self._execution.seconds

    def _what_to_change(self, scope: Scope, gpu: Gpu | None, made: Estimate, batch_size: int) -> WhatToChange:
        def evaluate(spec: RunSpec) -> Evaluated:
            by = self if spec == self._spec else Estimator(spec)  # other settings run other steps: another trace
            found = made if by is self else by.estimates([gpu])[0]
            return Evaluated(found, partial(by._replays_for(gpu).peak_bytes, gpu))

        return what_to_change(self._spec, batch_size, evaluate, scope, self._execution.stage, self._changeable)

    def _frontier(self, input_sizes: Sequence[int], gpu: Gpu | None, *_: Any) -> Frontier:
        specs, made = specs_of(self._spec, input_sizes), list[Estimate]()
        for number, spec in enumerate(specs, 1):
            self._execution.stage(f"size {number} of {len(specs)}: {spec.input_size}")
            made += Estimator(spec).estimates([gpu], grid_of(spec))
        return frontier_of(self._spec, made)

    def _largest(self, setting: LargestOf, gpu: Gpu | None, made: Estimate, batch_size: int) -> Largest:
        def memory_of(spec: RunSpec) -> int:
            replays = self._replays_for(gpu) if spec == self._spec else _replays_of_one_size(spec, gpu)
            return replays.peak_bytes(gpu, batch_size)

        return largest_of(
            self._spec,
            setting,
            batch_size,
            memory_of,
            limit_bytes=made.limit_bytes,
            margin_fraction=made.margin_fraction,
            report=self._execution.stage,
        )

    def _able(self, gpus: Sequence[Gpu | None]) -> list[Gpu | None]:
        able, refusal = [], None
        for gpu in gpus:
            try:
                check(self._spec, gpu)
                able.append(gpu)
            except SpecError as error:
                refusal = error
                if len(gpus) > 1:
                    self._execution.log(f"left out: {error}", "warning")
        if refusal is not None and not able:
            raise refusal
        return able

    def _replays_for(self, gpu: Gpu | None) -> Replays:
        family = None if gpu is None else family_of(gpu, self._spec.precision)
        if family not in self._replays:
            stored = None if family is None else stored_traces.find(self._spec, family)
            if stored:
                self._take(stored)
            else:
                self._trace(gpu, family)
        return self._replays[family]

    def _take(self, stored: StoredTrace) -> None:
        self.versions = stored.versions
        self._stored.append((stored, len(stored.outcomes)))
        replays = Replays(stored.model, self._spec.expandable_segments, stored.outcomes)
        self._replays |= dict.fromkeys(stored.families, replays)

    def _trace(self, gpu: Gpu | None, family: Family | None) -> None:
        if family and not self.versions["torch"]:
            raise EstimateImpossible(f"{NOT_SHIPPED}; with memorymark[models] they are traced here")
        self._execution.stage("importing torch: no trace of these settings is stored")
        from .tracing import trace

        if not self._replays:
            self._execution.phase("tracing")
        self._execution.stage(f"tracing training steps as on {'a CPU' if gpu is None else gpu.name}")
        alike = set(FAMILIES)
        model = trace.memory_model(self._spec, gpu, alike)
        families = {*alike, family} if family else {None}
        if family and isinstance(model, BatchModel) and model.approximate_because is None:
            self._take(StoredTrace(tuple(sorted({*alike, family})), self.versions, model))
        else:
            self._replays |= dict.fromkeys(families, Replays(model, self._spec.expandable_segments))

    def _keep(self) -> None:
        """Keep the traces that are new, and what replays found for more cards and sizes than before."""
        for stored, known in self._stored:
            if len(stored.outcomes) > known:
                stored_traces.keep(self._spec, stored)

    def _estimate(
        self, gpu: Gpu | None, batch_sizes: tuple[int, ...], traced_seconds: float, *, explains: bool
    ) -> Estimate:
        before = time.monotonic()
        replays = self._replays_for(gpu)
        made = estimate(
            self._spec,
            gpu,
            replays.model,
            seconds=traced_seconds,
            versions=self.versions,
            batch_sizes=batch_sizes,
            replays=replays,
            explains=explains,
        )
        made = made.taking(traced_seconds + time.monotonic() - before)
        self._execution.emit_event("estimate", estimate=made.to_dict())
        return made


def _replays_of_one_size(spec: RunSpec, gpu: Gpu | None) -> Replays:
    from .tracing import trace

    return Replays(trace.model_of_one_size(spec, gpu), spec.expandable_segments)
