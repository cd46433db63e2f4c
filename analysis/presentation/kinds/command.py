"""The tuning of a training command or function in words: a measurement of which no setting is known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.measurement import Measurement
from engine.describe.grade import describe_grade
from engine.progress import COMPARING_PHASES, TUNING_PHASES

_COMMAND_LENGTH = 80


class Command(Measurement):
    """A training of somebody's own, measured start by start."""

    runs_own_code = True

    def phases(self, run: Run) -> tuple[str, ...]:
        return COMPARING_PHASES if self.compares_speeds(run.spec) else TUNING_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        whole = ["whole run"] if spec.get("whole_run") else []
        function = spec.get("function")
        line = f"function {function}" if function else shlex.join(spec["command"])
        file, _, key = (spec.get("batch_in") or "").rpartition(":")
        config = [f"Batch size in {file}: {key}"] if file else []
        grade = [text for text in (describe_grade(spec),) if text]
        return [line if len(line) <= _COMMAND_LENGTH else f"{line[: _COMMAND_LENGTH - 1]}…", *config, *whole, *grade]

    def compares_speeds(self, spec: Mapping[str, Any]) -> bool:
        return bool(spec.get("compare_speed"))
