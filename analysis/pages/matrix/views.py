"""The page with the batch size of each model on each card."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import may_be_public
from analysis.http.query_string import BadQuery
from analysis.models import Device, MatrixCell
from analysis.pages.matrix.context import matrix_context
from analysis.pages.matrix.prices import card_prices
from analysis.pages.matrix.query import MatrixForm


@may_be_public
@require_safe
def matrix(request: HttpRequest) -> HttpResponse:
    """Show the matrix for one choice of settings. An invalid address gets a 400 with the reason."""
    try:
        form = MatrixForm.read(request.GET)
    except BadQuery as error:
        return render(request, "analysis/matrix_refused.html", {"error": error}, status=400)
    cells = MatrixCell.objects.filter(**form.cell_columns)
    devices = Device.objects.enabled().exclude(kind="cpu")
    return render(request, "analysis/matrix.html", matrix_context(form, cells, devices, card_prices()))
