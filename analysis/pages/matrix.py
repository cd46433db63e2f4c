"""The page with the batch size of each model on each card."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import may_be_public
from analysis.http.query_string import BadQuery
from analysis.lists.matrix.query import MatrixPageForm, card_prices, stored_cells
from analysis.lists.matrix.table import join_limits, mark_cheapest_that_fits, matrix_table
from analysis.models import Device
from analysis.pages.field_groups import GroupedForm, topics_of
from engine.settings.spec import DEFAULTS

_OPEN = ("batch", "cards", "precision", "optimizer", "gradient_checkpointing", "lora_rank")


class MatrixSettings(GroupedForm, MatrixPageForm):
    OPEN, TOPICS = _OPEN, topics_of([name for name in MatrixPageForm.base_fields if name not in _OPEN])


@may_be_public
@require_safe
def matrix(request: HttpRequest) -> HttpResponse:
    """Show the matrix for one choice of settings. An invalid address gets a 400 with the reason."""
    try:
        form = MatrixSettings.read(request.GET)
    except BadQuery as error:
        refused = {"error": error, "what": "matrix", "instead": "The matrix of the usual settings"}
        return render(request, "analysis/refused.html", refused, status=400)
    cells = stored_cells(form)
    devices = Device.objects.enabled().exclude(kind="cpu")
    table = matrix_table(form, cells, devices, card_prices())
    cards, rows = join_limits(table["cards"], table["rows"])
    batch_size = form.cleaned_data["batch"]
    context = table | {
        "cards": cards,
        "rows": mark_cheapest_that_fits(rows, batch_size),
        "batch_size": batch_size,
        "cpu_count": sum(card.is_cpu for card in cards),
        "gpu_count": sum(not card.is_cpu for card in cards),
        "assumed_price_usd": DEFAULTS["price_per_hour_usd"],
    }
    return render(request, "analysis/matrix/page.html", context)
