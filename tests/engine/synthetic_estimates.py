"""Estimates of the made-up devices that are wrong by a chosen factor, in the two ways a real one can be.

They know the smooth curve of their device, and nothing of its steps and its noise.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from engine.estimate.what_to_change import Evaluated
from tests.engine.synthetic_devices import Device

WAYS = ("bytes for a sample", "the whole rise")


def estimate(device: Device, boundary: int, factor: float, way: str) -> Callable[[int], int]:
    """Bytes by batch size, such that `factor` times `boundary` seems to be the largest batch size.

    Wrong in the bytes for a sample, it bends where `factor` times the batch size does; wrong in the whole rise, it
    bends where the device does, and is too steep or too flat everywhere.
    """
    clean = device.clean
    assert clean is not None
    first = clean(1)
    if way == "bytes for a sample":
        return lambda size: round(clean(1 + (size - 1) / factor))
    rise, expected_rise = clean(boundary) - first, clean(max(boundary * factor, 1)) - first
    steepness = rise / expected_rise if rise > 0 and expected_rise > 0 else 1.0
    return lambda size: round(first + (clean(size) - first) * steepness)


def evaluated(limit_bytes: int, margin: float, largest: int, safe: int, peak_bytes: Callable[[int], int]) -> Evaluated:
    """One combination of settings, with the figures by which it is judged."""
    figures = {"limit_bytes": limit_bytes, "margin_fraction": margin}
    made: Any = SimpleNamespace(largest_batch_size=largest, safe_batch_size=safe, **figures)
    return Evaluated(made, peak_bytes)
