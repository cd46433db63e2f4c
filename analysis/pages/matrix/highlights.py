"""PURE: what a million samples cost on a card, and which measured cards are the fastest and the cheapest."""

from __future__ import annotations

from collections.abc import Mapping

NOISE_FRACTION = 0.03
"""Figures this near to the best are called as good: speeds vary that much from run to run."""
_HOUR_SECONDS, _MILLION = 3_600, 1_000_000


def million_samples_usd(price_per_hour_usd: float | None, samples_per_second: float | None) -> float | None:
    """The assumed price of an hour over the samples measured in one; None where either is not known."""
    if price_per_hour_usd is None or not samples_per_second:
        return None
    return price_per_hour_usd / (samples_per_second * _HOUR_SECONDS) * _MILLION


def fastest(samples_per_second: Mapping[str, float | None]) -> set[str]:
    """The cards with the highest speed; empty unless there are two to compare."""
    known = {card: speed for card, speed in samples_per_second.items() if speed is not None}
    if len(known) < 2:
        return set()
    best = max(known.values())
    return {card for card, speed in known.items() if speed >= best * (1 - NOISE_FRACTION)}


def cheapest(costs_usd: Mapping[str, float | None]) -> set[str]:
    """The cards with the lowest cost; empty unless there are two to compare."""
    known = {card: cost for card, cost in costs_usd.items() if cost is not None}
    if len(known) < 2:
        return set()
    best = min(known.values())
    return {card for card, cost in known.items() if cost <= best * (1 + NOISE_FRACTION)}
