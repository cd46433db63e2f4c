"""A watched training in words: what it used, whether it lasts, why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.presentation import Presentation, endings_of
from analysis.presentation.kinds.size import Command
from analysis.presentation.labels import Chip, model_name
from analysis.presentation.unreadable import read_stored
from engine.facts.progress import WATCHING_PHASES
from engine.questions.documents.watched import Watched
from engine.recording.ended import was_stopped


class Watch(Presentation):
    mark = "watch"
    runs_own_code = True
    has_limit = False
    not_compared = "a watch, which tries no batch size"
    endings = endings_of("watch", "report", failed="the watch failed")

    def found(self, run: Run) -> str:
        chip = self.chip(run)
        return f"{chip.icon} {chip.word}" if chip else "✓ ended"

    def answer(self, run: Run) -> str:
        return f"{model_name(run.model)}: {read_stored(Watched.from_dict, run.result).headline}"

    def chip(self, run: Run) -> Chip | None:
        """Return how the command ended; None where it ended well, or has not."""
        if not run.exit_status:
            return None
        return Chip("⊘", "stopped", "chip-plain") if was_stopped(run.exit_status) else Chip("✕", "died", "chip-bad")

    def used_bytes(self, run: Run) -> int | None:
        """Return the peak, where the card's memory is known."""
        unused, total = run.current_waste_bytes, run.limit_bytes
        return None if unused is None or total is None else total - unused

    def doing(self, run: Run) -> str:
        return f"Watching {model_name(run.model)}"

    def phases(self, run: Run) -> tuple[str, ...]:
        return WATCHING_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        return Command().settings(spec)
