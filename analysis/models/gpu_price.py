"""What a card costs an hour, as this lab pays it: stands in for the catalogue's first value of that card.

A model of its own file: `analysis/models/run.py` takes it in.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models


class GpuPrice(models.Model):
    """The price of one card of the catalogue; the card is named by its id there."""

    gpu = models.CharField("card", max_length=40, unique=True)
    price_per_hour_usd = models.FloatField("price per hour, US$", validators=[MinValueValidator(0)])
    source = models.CharField(max_length=200, help_text="Where this price is from: an offer, an invoice, a price list.")
    valid_from = models.DateField("date", help_text="The day the source is of.")
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("gpu",)
        verbose_name = "GPU price"

    def __str__(self) -> str:
        return f"{self.gpu}: {self.price_per_hour_usd:g} US$ an hour"
