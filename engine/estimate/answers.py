"""Joins tracing and predicting: one spec, many cards, as few traces as there are kinds of cards.

Torch is imported when the first trace is requested. Run it in a process of its own: what must be patched for fake
tensors is process-wide while a trace goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import SpecError
from ..spec import RunSpec
from .frontier import Frontier, frontier_of, grid_of, specs_of
from .gpus import Gpu
from .predict import Replays, check, estimate
from .types import SCHEMA, Estimate
from .what_to_change import Evaluated, Scope, WhatToChange, what_to_change

Emit = Callable[[dict[str, Any]], None]


def ignore_event(_: dict[str, Any]) -> None:
    """Ignore an event."""


class Answers:
    """Estimates of one spec. `emit` is called with each event."""

    def __init__(self, spec: RunSpec, *, emit: Emit = ignore_event) -> None:
        self._spec = spec
        self._emit = emit
        self._started = time.monotonic()
        self._replays: dict[Any, Replays] = {}
        self.what_to_change: WhatToChange | None = None

    def _emit_event(self, event: str, **content: Any) -> None:
        self._emit({"event": event, "seconds": round(time.monotonic() - self._started, 3), **content})

    def of(
        self,
        gpus: Sequence[Gpu | None],
        batch_sizes: tuple[int, ...] = (),
        scope: Scope | None = None,
        input_sizes: Sequence[int] = (),
    ) -> list[Estimate]:
        """One for each card that can do what is requested (None is the CPU). SpecError where none can.

        With a scope, of one card: also what to change so that the first of `batch_sizes`, or today's, fits. With
        `input_sizes`, of one card: also the largest batch at each of these lengths, or image sizes.
        """
        if scope is not None and len(gpus) != 1:
            raise SpecError("what_to_change", "is for one card: name it")
        if input_sizes and len(gpus) != 1:
            raise SpecError("frontier", "is for one card: name it")
        ids = ["cpu" if gpu is None else gpu.id for gpu in gpus]
        self._emit_event("started", schema=SCHEMA, spec=self._spec.to_dict(), gpus=ids)
        able = self._able(gpus)
        self._emit_event("phase", phase="tracing")
        for gpu in able:
            self._replays_for(gpu)
        self._emit_event("phase", phase="predicting", cards=len(able))
        traced_seconds = time.monotonic() - self._started
        # of one card the result says what would fill it; of many, each would have as long a list
        explains = len(able) == 1
        estimates = [self._estimate(gpu, batch_sizes, traced_seconds, explains=explains) for gpu in able]
        result: dict[str, Any] = {"estimates": [made.to_dict() for made in estimates]}
        if scope is not None:
            wanted = batch_sizes[0] if batch_sizes else self._spec.current_batch_size
            self.what_to_change = self._what_to_change(able[0], estimates[0], wanted, scope)
            result["what_to_change"] = self.what_to_change.to_dict()
        if input_sizes:
            result["frontier"] = self._frontier(able[0], input_sizes).to_dict()
        self._emit_event("phase", phase="finished")
        self._emit_event("result", result=result)
        return estimates

    def _what_to_change(self, gpu: Gpu | None, made: Estimate, batch_size: int, scope: Scope) -> WhatToChange:
        """Estimate other settings on the same card, and choose among them. The estimate as requested is made already.

        A trace serves every batch size, but each combination of settings runs other steps and needs its own.
        """

        def evaluate(spec: RunSpec) -> Evaluated:
            if spec == self._spec:
                return _evaluated(made, self._replays_for(gpu), gpu)
            other = Answers(spec)
            check(spec, gpu)
            replays = other._replays_for(gpu)
            return _evaluated(other._estimate(gpu, (), 0.0, explains=False), replays, gpu)

        def report(text: str) -> None:
            self._emit_event("stage", stage=text)

        return what_to_change(self._spec, batch_size, evaluate, scope, report)

    def _frontier(self, gpu: Gpu | None, input_sizes: Sequence[int]) -> Frontier:
        """Estimate each length on the card. Another length runs other steps, so each has its own trace."""
        specs, made = specs_of(self._spec, input_sizes), []
        for number, spec in enumerate(specs, 1):
            self._emit_event("stage", stage=f"size {number} of {len(specs)}: {spec.input_size}")
            before, other = time.monotonic(), Answers(spec)
            check(spec, gpu)
            other._replays_for(gpu)
            made.append(other._estimate(gpu, grid_of(spec), time.monotonic() - before, explains=False))
        return frontier_of(self._spec, made)

    def _able(self, gpus: Sequence[Gpu | None]) -> list[Gpu | None]:
        able, refusal = [], None
        for gpu in gpus:
            try:
                check(self._spec, gpu)
                able.append(gpu)
            except SpecError as error:
                refusal = error
                if len(gpus) > 1:
                    self._emit_event("log", level="warning", message=f"left out: {error}")
        if refusal is not None and not able:
            raise refusal
        return able

    def _replays_for(self, gpu: Gpu | None) -> Replays:
        """Trace the steps by which this card is predicted, once for all cards that run the same kernels."""
        if not self._replays:
            self._emit_event("stage", stage="importing torch")
        from . import attention, trace  # imports torch

        conditions = trace.conditions_for(gpu, self._spec.precision)
        if conditions not in self._replays:
            self._emit_event("stage", stage=f"tracing training steps as on {'a CPU' if gpu is None else gpu.name}")
            alike = set(attention.FAMILIES)
            traced = Replays(trace.memory_model(self._spec, gpu, alike), self._spec.expandable_segments)
            self._replays |= {replace(conditions, family=family): traced for family in (*alike, conditions.family)}
        return self._replays[conditions]

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
            versions=versions(),
            batch_sizes=batch_sizes,
            replays=replays,
            explains=explains,
        )
        made = made.taking(traced_seconds + time.monotonic() - before)
        self._emit_event("estimate", estimate=made.to_dict())
        return made


def _evaluated(made: Estimate, replays: Replays, gpu: Gpu | None) -> Evaluated:
    return Evaluated(
        limit_bytes=made.limit_bytes,
        margin_fraction=made.margin_fraction,
        largest_batch_size=made.largest_batch_size,
        safe_batch_size=made.safe_batch_size,
        peak_bytes=partial(replays.peak_bytes, gpu),
    )


def versions() -> dict[str, str | None]:
    """Return the libraries whose code was traced: another version may allocate otherwise."""
    return {package: _version(package) for package in ("torch", "transformers", "torchvision")}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
