"""PURE: which measured cards are the fastest and the cheapest; figures within the noise of the best count as good."""

from __future__ import annotations

from collections.abc import Mapping

from engine.results.stats import NOISE_FRACTION


def fastest(samples_per_second: Mapping[str, float | None]) -> set[str]:
    """Find the cards with the highest speed; empty unless there are two to compare."""
    known = {card: speed for card, speed in samples_per_second.items() if speed is not None}
    if len(known) < 2:
        return set()
    best = max(known.values())
    return {card for card, speed in known.items() if speed >= best * (1 - NOISE_FRACTION)}


def cheapest(costs_usd: Mapping[str, float | None]) -> set[str]:
    """Find the cards with the lowest cost; empty unless there are two to compare."""
    known = {card: cost for card, cost in costs_usd.items() if cost is not None}
    if len(known) < 2:
        return set()
    best = min(known.values())
    return {card for card, cost in known.items() if cost <= best * (1 + NOISE_FRACTION)}
