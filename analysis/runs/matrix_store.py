"""The cells of the matrix: stored when a run ends, updated when one is deleted or restored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q

from analysis.models import ALL_GPUS, SEARCHES, MatrixCell, Run, RunKind, State
from analysis.models.matrix import KEY
from analysis.runs.columns.matrix_cells import MEASURED, Cell, settings_key
from analysis.runs.kinds import rules_of
from engine.questions.kinds import KINDS, Document
from engine.settings.spec import trained_settings

_LOOKED_THROUGH_MAX = 500
"""Runs that are read to find the next newest of a cell: they agree in all but the less common settings."""
_READ_AT_ONCE = 500

Key = tuple[Any, ...]

# runs that may have cells; further conditions, such as a card's memory limit, can only be read from the result
_MAY_HAVE_CELLS = Q(state=State.FINISHED) & (
    Q(kind=RunKind.ESTIMATE)
    | Q(kind__in=SEARCHES, certified=True, is_shared=False, is_trusted=True) & ~Q(precision="")  # of an own script
)


def cells_store(*, run: Run, found: Document) -> None:
    """Store the cells of a run that has just finished, unless it is untrusted."""
    if run.is_trusted and (cells := rules_of(run).cells(run, found)):
        run.refresh_from_db(fields=["finished_at"])
        _store(run, cells, run.finished_at)


def cells_renew(*, run_ids: Collection[int]) -> None:
    """Update the cells of runs that were deleted or restored: each cell gets the result of the newest run."""
    cards = {
        tuple(getattr(cell, name) for name in KEY): cell.card_name
        for cell in MatrixCell.objects.filter(run__in=run_ids)
    }
    for run in Run.objects.filter(_MAY_HAVE_CELLS, pk__in=run_ids).iterator(_READ_AT_ONCE):
        cards |= {_key(cell): cell["card_name"] for cell in _cells(run)}
    with transaction.atomic():
        for key, card_name in cards.items():
            _renew(dict(zip(KEY, key, strict=True)), card_name)


def _cells(run: Run) -> list[Cell]:
    return rules_of(run).cells(run, KINDS[run.kind].read(run.result)) if run.result else []


def _renew(key: Cell, card_name: str) -> None:
    MatrixCell.objects.filter(**key).delete()
    same = {name: key[name] for name in ("precision", "optimizer")}
    if key["kind"] == MEASURED:
        of_model = Q(model=key["model"]) | Q(model__startswith=f"{key['model']}, ")  # of ranks
        runs = Run.objects.measuring().filter(of_model, **same, device_name=card_name)
    else:
        runs = Run.objects.estimating().filter(**same, model=key["model"], gpu__in=(key["card"], ALL_GPUS))
    newest = runs.filter(_MAY_HAVE_CELLS).order_by("-finished_at", "-pk").values_list("pk", "spec")
    for pk, spec in newest[:_LOOKED_THROUGH_MAX]:
        if settings_key(trained_settings(spec)) != key["settings"]:
            continue
        run = Run.objects.get(pk=pk)
        if found := [cell for cell in _cells(run) if _key(cell) == tuple(key.values())]:
            _store(run, found, run.finished_at)
            return


def _store(run: Run, cells: list[Cell], answered_at: Any) -> None:
    rows = [MatrixCell(run_id=run.pk, answered_at=answered_at, **cell) for cell in cells]
    if rows:
        replaced = ["run", "answered_at", *(name for name in cells[0] if name not in KEY)]
        MatrixCell.objects.bulk_create(rows, update_conflicts=True, unique_fields=KEY, update_fields=replaced)


def _key(cell: Cell) -> Key:
    return tuple(cell[name] for name in KEY)
