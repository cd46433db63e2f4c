"""The choice of runs, shown while fewer than two are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from analysis.models import ALL_GPUS, Run, State
from analysis.presentation.kinds import BY_KIND
from analysis.presentation.run_rows import HistoryRow, history_rows

OFFERED_MAX, READ_MAX = 20, 200
_NOT_COMPARED = [kind for kind, shown in BY_KIND.items() if shown.not_compared]


@dataclass(frozen=True, slots=True)
class Offer:
    """One run that can be chosen; the one that the address names is chosen already."""

    row: HistoryRow
    is_chosen: bool


def offers(named: Sequence[Run]) -> list[Offer]:
    """Return the named runs, then the newest of the same models, then the newest of all that have figures."""
    chosen, models = {run.pk for run in named}, {run.model for run in named}
    newest = (
        Run.objects.for_history()
        .filter(state=State.FINISHED)
        .exclude(gpu=ALL_GPUS)
        .exclude(kind__in=_NOT_COMPARED)[:READ_MAX]
    )
    others = sorted((run for run in newest if run.pk not in chosen), key=lambda run: run.model not in models)
    runs = [*named, *islice(others, OFFERED_MAX)]
    return [Offer(row, row.run.pk in chosen) for row in history_rows(runs, {})]
