"""The page that says what each card takes of each model."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.access.middleware import may_be_public
from analysis.matrix.asked import MatrixForm
from analysis.matrix.page import matrix_context
from analysis.matrix.prices import card_prices
from analysis.matrix.tables import MatrixCell
from analysis.models import Device


@may_be_public
@require_safe
def matrix(request: HttpRequest) -> HttpResponse:
    """For one choice of settings. What the address asks wrongly is said, with 400."""
    form = MatrixForm.of(request.GET)
    if not form.is_valid():
        return render(request, "analysis/matrix_refused.html", {"form": form}, status=400)
    cells = MatrixCell.objects.filter(**form.cell_columns)
    devices = Device.objects.enabled().exclude(kind="cpu")
    return render(request, "analysis/matrix.html", matrix_context(form, cells, devices, card_prices()))
