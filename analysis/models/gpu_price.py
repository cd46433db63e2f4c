"""The lab's own price of a card per hour, which replaces the catalogue's."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models


class GpuPrice(models.Model):
    """The price of one card of the catalogue, named by its id there."""

    gpu = models.CharField("card", max_length=40, unique=True)
    price_per_hour_usd = models.FloatField("price per hour, US$", validators=[MinValueValidator(0)])
    source = models.CharField(max_length=200, help_text="Source of the price: an offer, an invoice, a price list.")
    valid_from = models.DateField("date", help_text="Date of the source.")
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("gpu",)
        verbose_name = "GPU price"

    def __str__(self) -> str:
        return f"{self.gpu}: {self.price_per_hour_usd:g} US$ an hour"
