"""The price of an hour of each card, for costs in the matrix: always an assumption, with its source and date."""

from __future__ import annotations

from analysis.models import Device
from analysis.runs.gpu_catalog import Price, gpu_of, prices


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
