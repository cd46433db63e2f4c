"""The tuning of a training command or function in words: a measurement of which no setting is known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.measurement import Measurement
from analysis.presentation.labels import describe_settings
from engine.describe.ranks import describe_grade
from engine.progress import COMPARING_PHASES, TUNING_PHASES
from engine.results.figure_kinds import EMULATED
from engine.settings.rank_settings import OF_SEVERAL_GPUS
from engine.spec import DEFAULTS

_COMMAND_LENGTH = 80


class Command(Measurement):
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
