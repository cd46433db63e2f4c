"""A measurement in words: a search for the largest and the fastest batch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.presentation import Presentation, endings_of
from analysis.presentation.labels import model_name
from analysis.presentation.result_summary import verdict
from analysis.presentation.unreadable import read_or_none, read_stored
from engine.describe.speed import speed_of
from engine.documents.measured import Measured
from engine.progress import CHECKING_PHASES, MEASURING_PHASES, TIMING_PHASES
from engine.results.result import Reason


class Measurement(Presentation):
    shows_probes = True
    endings = endings_of("run", "result", failed="the run failed", is_explained=False)

    def found(self, run: Run) -> str:
        if run.boundary_reason == Reason.DOES_NOT_FIT:
            return "✕ does not fit"
        if run.recommended_batch_size:
            return f"✓ {run.recommended_batch_size:,}"
        if not run.largest_batch_size:
            return "✓ finished"
        return f"{'✓' if run.certified else '≥'} {run.largest_batch_size:,}"

    def answer(self, run: Run) -> str:
        return verdict(read_stored(Measured.from_dict, run.result))

    def badge_claim(self, run: Run) -> tuple[str, str]:
        claim, colour = super().badge_claim(run)
        result = read_or_none(Measured.from_dict, run.result)
        if result is None or result.recommended is None or not (known := speed_of(result)).is_gain:
            return claim, colour
        return f"{claim} · use {result.recommended.batch_size:,}: {known.factor}", colour

    def doing(self, run: Run) -> str:
        if (size := run.spec.get("check_batch_size")) is not None:
            return f"Checking whether batch {size:,} of {model_name(run.model)} fits"
        if run.takes_over_id is not None:
            return f"Comparing the speeds of {model_name(run.model)}"
        return super().doing(run)

    def phases(self, run: Run) -> tuple[str, ...]:
        if run.spec.get("check_batch_size") is not None:
            return CHECKING_PHASES
        # a run that takes over another one searches after all where the device or the software changed
        is_timing_only = run.takes_over_id is not None and run.phase in ("", *TIMING_PHASES)
        if is_timing_only:
            return TIMING_PHASES
        return tuple(each for each in MEASURING_PHASES if each != "timing" or self.compares_speeds(run.spec))

    def compares_speeds(self, spec: Mapping[str, Any]) -> bool:
        return bool(spec.get("compare_speed", True))
