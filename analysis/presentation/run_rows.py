"""Rows of the list of runs, from columns alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.models import Run
from analysis.presentation import labels, run_state
from analysis.presentation.origin import describe_origin
from analysis.presentation.stored_validation import verdict_chip
from analysis.runs.queue_forecast import QueuePosition
from engine.result import Reason


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One run of the list."""

    run: Run
    model_name: str
    device_name: str
    settings: str
    chip: run_state.Chip
    took_seconds: float | None
    turn: str
    origin: str | None = None

    @property
    def does_not_fit(self) -> bool:
        return self.run.boundary_reason == Reason.DOES_NOT_FIT

    @property
    def cards(self) -> str:
        """Write "34 of 34 cards" for an estimate of all cards that has ended."""
        run = self.run
        return "" if run.estimated_cards is None else f"{run.estimated_cards_that_fit} of {run.estimated_cards} cards"

    @property
    def used_percent(self) -> str | None:
        """The share of the limit that the recommended size uses, for the small bar."""
        used, limit = self.run.recommended_memory_bytes, self.run.limit_bytes
        return f"{min(1.0, used / limit) * 100:.1f}%" if used and limit else None


def history_rows(runs: Iterable[Run], positions: Mapping[int, QueuePosition]) -> list[HistoryRow]:
    """Return the rows in the given order."""
    return [_row(run, positions.get(run.pk)) for run in runs]


def _row(run: Run, turn: QueuePosition | None) -> HistoryRow:
    return HistoryRow(
        run=run,
        model_name=labels.model_name(run.model),
        device_name=labels.short_device_name(run.device_name) or labels.run_place(run),
        settings=" · ".join(labels.settings_of_run(run)),
        chip=verdict_chip(run) or run_state.chip(run),
        took_seconds=_took_seconds(run),
        turn=run_state.describe_queue_position(turn) if turn else "",
        origin=describe_origin(run),
    )


def _took_seconds(run: Run) -> float | None:
    if run.finished_at is None or run.started_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()
