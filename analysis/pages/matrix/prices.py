"""What an hour of each card costs, for the money in the matrix: always an assumption, with its source and date."""

from __future__ import annotations

from analysis.models import Device
from analysis.runs.gpu_catalog import Price, gpu_of, prices


def card_prices() -> dict[str, Price]:
    """Card -> price: of the lab's own list; else of its devices, the dearest of a class; else the catalogue's."""
    listed = prices()
    of_devices: dict[str, Price] = {}
    priced = Device.objects.filter(price_per_hour_usd__isnull=False).order_by("price_per_hour_usd", "pk")
    for device in priced:
        gpu = gpu_of(device)
        card = gpu.id if gpu else device.name
        of_devices[card] = Price(device.price_per_hour_usd or 0.0, f"set for {device.device} here", "", True)
    return listed | {
        card: price for card, price in of_devices.items() if card not in listed or not listed[card].is_of_lab
    }
