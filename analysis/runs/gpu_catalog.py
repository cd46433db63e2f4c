"""The cards that an estimate can be requested for: the engine's catalogue, and the lab's price of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError

from analysis.models import ALL_GPUS, CPU, Device, GpuPrice
from engine.errors import SpecError
from engine.estimate.gpus import Gpu, find, gpus, match
from engine.text.units import format_bytes

_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD"}


@dataclass(frozen=True, slots=True)
class Price:
    per_hour_usd: float
    source: str
    date: str
    is_of_lab: bool

    def times(self, ranks: int) -> Price:
        return replace(self, per_hour_usd=self.per_hour_usd * ranks)


def gpu_name(gpu_id: str) -> str:
    """Return the vendor's name of a card, or the id of a card that is no longer in the catalogue."""
    if gpu_id == ALL_GPUS:
        return "all GPUs"
    if gpu_id == CPU:
        return "CPU"
    known = gpus().get(gpu_id)
    return known.name if known else gpu_id


def gpu_total_bytes(gpu_id: str) -> int | None:
    known = gpus().get(gpu_id)
    return known.total_bytes if known else None


def gpu_ids() -> list[str]:
    return list(gpus())


def gpu_choices() -> list[tuple[str, object]]:
    by_vendor: dict[str, list[tuple[str, str]]] = {}
    for gpu in gpus().values():
        label = f"{gpu.name} · {format_bytes(gpu.total_bytes)}"
        by_vendor.setdefault(_VENDORS.get(gpu.vendor, gpu.vendor), []).append((gpu.id, label))
    return [(ALL_GPUS, f"All {len(gpus())} GPUs of the catalogue"), *by_vendor.items()]


def calibrations(gpu: str) -> list[dict[str, Any]]:
    """Return the newest calibration of each class of cards, from any host; for one card of the catalogue or for all."""
    calibrated = Device.objects.filter(calibration__isnull=False).order_by("calibrated_at", "pk")
    measured = calibrated.values_list("calibration", flat=True)
    newest = {calibration["gpu_id"]: calibration for calibration in measured if calibration is not None}
    return [found for gpu_id, found in newest.items() if gpu_id is not None and gpu in (gpu_id, ALL_GPUS)]


def gpu_of(device: Device) -> Gpu | None:
    return match(device.name, device.capacity_bytes) if device.kind == "cuda" else None


def list_prices() -> dict[str, Price]:
    """Return the catalogue's price of each GPU that has one: what everybody may see."""
    return {
        gpu.id: Price(gpu.price_per_hour_usd, gpu.price_source or "", str(gpu.price_date or ""), False)
        for gpu in gpus().values()
        if gpu.price_per_hour_usd is not None
    }


def prices() -> dict[str, Price]:
    """Return the price of each card: the lab's own where there is one, else the catalogue's. Others are left out."""
    lab_prices = {
        row.gpu: Price(row.price_per_hour_usd, row.source, row.valid_from.isoformat(), True)
        for row in GpuPrice.objects.all()
    }
    return list_prices() | lab_prices


def validate_gpu(gpu_id: str) -> None:
    """Refuse a card that is not in the catalogue, with the nearest names. A validator of forms."""
    try:
        find(gpu_id)
    except SpecError as error:
        raise ValidationError(str(error).removeprefix("gpu: ")) from error
