"""A watch: a training that ran once, as it is, where it is. Its report says what it used, and why it ended."""

from __future__ import annotations

from typing import Any

from analysis.models import Run
from analysis.runs.columns.result_columns import watch_columns
from analysis.runs.kinds.rules import Place, Rules
from engine.questions.documents.watched import Watched
from engine.recording.spec import WatchSpec

WATCHED_THERE = "a training is watched where it is: memorymark watch --report-to URL -- COMMAND"


class Watch(Rules):
    """The rules of a watch, which no portal starts. Its exit status is the command's."""

    spec_types = (WatchSpec,)
    columns = staticmethod(watch_columns)

    def not_again(self, run: Run) -> str:
        return WATCHED_THERE

    def spec_columns(self, spec: WatchSpec) -> dict[str, Any]:
        return {"model": spec.model, "spec": spec.to_dict()}

    def devices_used(self, found: Watched) -> int:
        return found.device_count

    def exit_status(self, found: Watched) -> int:
        return found.status

    def is_shareable(self, run: Run) -> bool:
        return False

    def place(self, run: Run) -> Place | None:
        return None
