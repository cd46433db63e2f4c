"""A search for the largest and the fastest batch size in words: of a model, or of somebody's own training."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.presentation import Presentation, endings_of
from analysis.presentation.labels import describe_settings, model_name
from analysis.presentation.result_summary import verdict
from analysis.presentation.unreadable import read_or_none, read_stored
from engine.describe.ranks import describe_grade
from engine.describe.speed import speed_of
from engine.facts.figure_kinds import EMULATED
from engine.facts.progress import (
    CHECKING_PHASES,
    COMPARING_PHASES,
    MEASURING_PHASES,
    TIMING_PHASES,
    TUNING_PHASES,
)
from engine.facts.result import Reason
from engine.questions.documents.measured import Measured
from engine.settings.rank_settings import OF_SEVERAL_GPUS
from engine.settings.spec import DEFAULTS

_COMMAND_LENGTH = 80


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


class Command(Measurement):
    """The tuning of a training command or function: no setting of it is known."""

    runs_own_code = True

    def phases(self, run: Run) -> tuple[str, ...]:
        return COMPARING_PHASES if self.compares_speeds(run.spec) else TUNING_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        if trained := spec.get("catalogue"):  # how many ranks and by which strategy is in its name
            of_model = {**DEFAULTS, **trained, **{name: DEFAULTS[name] for name in OF_SEVERAL_GPUS}}
            return [*filter(None, [describe_grade(spec)]), *describe_settings(of_model)]
        whole = ["whole run"] if spec.get("whole_run") else []
        function = spec.get("function")
        line = f"function {function}" if function else shlex.join(spec["command"])
        file, _, key = (spec.get("batch_in") or "").rpartition(":")
        config = [f"Batch size in {file}: {key}"] if file else []
        grade = [*filter(None, [describe_grade(spec)])]
        return [*grade, line if len(line) <= _COMMAND_LENGTH else f"{line[: _COMMAND_LENGTH - 1]}…", *config, *whole]

    def found(self, run: Run) -> str:
        found = super().found(run)
        return f"{found} ({EMULATED})" if run.spec.get("emulate_ranks") else found

    def badge_claim(self, run: Run) -> tuple[str, str]:
        claim, colour = super().badge_claim(run)
        return (f"{claim}, {EMULATED}", colour) if run.spec.get("emulate_ranks") else (claim, colour)
