"""The choice of runs, shown while fewer than two are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from analysis.lists.comparison.load import compared_by
from analysis.models import ALL_GPUS, Run, State
from analysis.presentation.kinds import BY_KIND, presentation_of
from analysis.presentation.kinds.presentation import CHANGES
from analysis.presentation.run_rows import HistoryRow, history_rows

OFFERED_MAX, READ_MAX = 20, 200


@dataclass(frozen=True, slots=True)
class Offer:
    """One run that can be chosen; the one that the address names is chosen already."""

    row: HistoryRow
    is_chosen: bool
    found: str = ""
    """What a race found, in a word; empty for other runs."""


def offers(named: Sequence[Run]) -> list[Offer]:
    by = compared_by(named)
    kinds = [kind for kind, shown in BY_KIND.items() if shown.compared_by == by and not shown.not_compared]
    chosen, models = {run.pk for run in named}, {run.model for run in named}
    newest = (
        Run.objects.for_history().filter(state=State.FINISHED).exclude(gpu=ALL_GPUS).filter(kind__in=kinds)[:READ_MAX]
    )
    others = sorted((run for run in newest if run.pk not in chosen), key=lambda run: run.model not in models)
    runs = [*named, *islice(others, OFFERED_MAX)]
    found = _found(runs) if by == CHANGES else {}
    return [Offer(row, row.run.pk in chosen, found.get(row.run.pk, "")) for row in history_rows(runs, {})]


def _found(races: Sequence[Run]) -> dict[int, str]:
    whole = Run.objects.in_bulk([run.pk for run in races])
    return {pk: presentation_of(run).found(run) for pk, run in whole.items() if run.state == State.FINISHED}
