"""The lab's prices of cards of the catalogue, with date and source."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ChoiceField, ModelForm
from django.http import HttpRequest

from analysis.admin.lists import Managed
from analysis.models import GpuPrice
from analysis.permissions import signed_in_user
from analysis.runs.gpu_catalog import gpu_choices, gpu_name, validate_gpu


@admin.register(GpuPrice)
class GpuPriceAdmin(Managed[GpuPrice]):
    """The lab's price, which replaces the catalogue's in every estimate."""

    list_display = ("card", "price_per_hour_usd", "source", "valid_from", "updated_by", "updated_at")
    list_select_related = ("updated_by",)
    readonly_fields = ("updated_by", "updated_at")

    @admin.display(ordering="gpu", description="GPU")
    def card(self, price: GpuPrice) -> str:
        return gpu_name(price.gpu)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "gpu":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        cards = [group for group in gpu_choices() if not isinstance(group[1], str)]
        return ChoiceField(label=db_field.verbose_name, choices=cards, validators=[validate_gpu])

    def save_model(self, request: HttpRequest, obj: GpuPrice, form: ModelForm[GpuPrice], change: bool) -> None:
        obj.updated_by = signed_in_user(request)
        super().save_model(request, obj, form, change)
