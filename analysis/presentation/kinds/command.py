"""The tuning of a training command or function in words: a measurement of which no setting is known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.measurement import Measurement
from analysis.presentation.labels import describe_settings
from engine.describe.grade import describe_grade
from engine.progress import COMPARING_PHASES, TUNING_PHASES
from engine.settings.rank_settings import OF_SEVERAL_GPUS
from engine.spec import DEFAULTS

_COMMAND_LENGTH = 80


class Command(Measurement):
    """A training of somebody's own, measured start by start."""

    runs_own_code = True

    def phases(self, run: Run) -> tuple[str, ...]:
        return COMPARING_PHASES if self.compares_speeds(run.spec) else TUNING_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        if trained := spec.get("catalogue"):  # how many ranks and by which strategy is in its name
            of_model = {**DEFAULTS, **trained, **{name: DEFAULTS[name] for name in OF_SEVERAL_GPUS}}
            return [*describe_settings(of_model), *filter(None, [describe_grade(spec)])]
        whole = ["whole run"] if spec.get("whole_run") else []
        function = spec.get("function")
        line = f"function {function}" if function else shlex.join(spec["command"])
        file, _, key = (spec.get("batch_in") or "").rpartition(":")
        config = [f"Batch size in {file}: {key}"] if file else []
        grade = [text for text in (describe_grade(spec),) if text]
        return [line if len(line) <= _COMMAND_LENGTH else f"{line[: _COMMAND_LENGTH - 1]}…", *config, *whole, *grade]

    def compares_speeds(self, spec: Mapping[str, Any]) -> bool:
        return bool(spec.get("compare_speed"))
