"""What a matrix is made of: the settings that all cells share, the stored cells, and prices of cards."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import QuerySet

from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import setting_field, with_fields
from analysis.models import Device, MatrixCell
from analysis.runs.columns.matrix_cells import settings_key
from analysis.runs.gpu_catalog import Price, gpu_of, prices
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import DEFAULTS, RANGES, TRAINING_SETTINGS

CARDS = {"usual": "usual", "all": "all known"}
"""The usual cards: the lab's own, measured cards, and cards with a price."""
_BATCH_SIZES = RANGES["current_batch_size"]
OF_THE_PAGE = ("cards", "batch")
"""What an address says besides settings."""


@with_fields({name: setting_field(name, help_text="") for name in TRAINING_SETTINGS})
class MatrixForm(StrictQueryForm):
    """The address of the page; a missing field has the default of a new run."""

    cards = forms.ChoiceField(label="GPUs shown", choices=CARDS.items(), initial="usual", required=False)

    @property
    def shows_all_cards(self) -> bool:
        return bool(self.cleaned_data["cards"] == "all")

    @property
    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name not in OF_THE_PAGE}

    @property
    def cell_columns(self) -> dict[str, Any]:
        settings = self.settings
        columns = {name: settings[name] for name in ("precision", "optimizer")}
        return columns | {"settings": settings_key(settings)}

    def address(self, **changed: str) -> str:
        given = {**self.cleaned_data, **changed}
        changes = {name: value for name, value in given.items() if value != self.fields[name].initial}
        return "?" + urlencode({name: 1 if value is True else value for name, value in changes.items()})

    def estimate_query(self, model: str, card: str, input_size: int | None = None) -> str:
        field = {WORKLOADS[model].input_field: input_size} if input_size else {}
        return "?" + urlencode({"kind": "estimate", "model": model, "gpu": card, **self.start_fields, **field})

    @property
    def start_fields(self) -> dict[str, Any]:
        return {name: 1 if value is True else value for name, value in self.settings.items() if value}


class MatrixPageForm(MatrixForm):
    batch = WholeNumberField(
        label="Your batch size today",
        required=False,
        initial=DEFAULTS["current_batch_size"],
        min_value=int(_BATCH_SIZES[0]),
        max_value=int(_BATCH_SIZES[1]),
    )


def stored_cells(form: MatrixForm) -> QuerySet[MatrixCell]:
    columns = (field.name for field in MatrixCell._meta.concrete_fields)
    origin = ("run__reported_from", "run__is_trusted", "run__requested_by__username")
    return MatrixCell.objects.filter(**form.cell_columns).select_related("run__requested_by").only(*columns, *origin)


def card_prices() -> dict[str, Price]:
    """Return the price of each card: the lab's list; else the highest of its devices; else the catalogue's."""
    listed = prices()
    device_prices: dict[str, Price] = {}
    priced = Device.objects.filter(price_per_hour_usd__isnull=False).order_by("price_per_hour_usd", "pk")
    for device in priced:
        gpu = gpu_of(device)
        card = gpu.id if gpu else device.name
        device_prices[card] = Price(device.price_per_hour_usd or 0.0, f"set for {device.device} here", "", True)
    return listed | {
        card: price for card, price in device_prices.items() if card not in listed or not listed[card].is_of_lab
    }
