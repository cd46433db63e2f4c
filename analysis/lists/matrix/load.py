"""Reads the cells of the matrix out of the database, for the page and the API."""

from __future__ import annotations

from django.db.models import QuerySet

from analysis.lists.matrix.query import MatrixForm
from analysis.models import MatrixCell

_OWN = tuple(field.name for field in MatrixCell._meta.concrete_fields)
_ORIGIN = ("run__reported_from", "run__is_trusted", "run__requested_by__username")


def stored_cells(form: MatrixForm) -> QuerySet[MatrixCell]:
    cells = MatrixCell.objects.filter(**form.cell_columns)
    return cells.select_related("run__requested_by").only(*_OWN, *_ORIGIN)
