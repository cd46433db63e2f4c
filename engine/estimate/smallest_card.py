"""PURE: which of many cards train a batch size, the smallest or the cheapest first."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from . import gpus
from .types import Estimate


def that_fit(estimates: Iterable[Estimate], batch_size: int) -> list[Estimate]:
    """Return the estimates in which the batch fits with the margin, the least memory first; of equals, the cheapest."""
    fitting = [made for made in estimates if made.safe_batch_size >= batch_size]
    return sorted(fitting, key=lambda made: (made.gpu.total_bytes, total_price(made)))


def smallest_gpu(estimates: Iterable[Estimate], batch_size: int) -> str | None:
    return next((made.gpu.id for made in that_fit(estimates, batch_size)), None)


def cheapest_that_fit(estimates: Iterable[Estimate], samples: int) -> list[Estimate]:
    """Return the cheapest estimates whose GPUs share so many samples with the margin; of equals, the fewest GPUs."""
    fitting = [made for made in estimates if made.safe_batch_size >= share_of(samples, made.spec.ranks)]
    return sorted(fitting, key=lambda made: (total_price(made), made.spec.ranks, made.gpu.total_bytes))


def share_of(samples: int, ranks: int) -> int:
    return -(-samples // ranks)


def total_price(made: Estimate) -> float:
    """Return the price of an hour of all its GPUs, to order them by; infinite where it is not known."""
    card = gpus.gpus().get(made.gpu.id)
    return inf if card is None or card.price_per_hour_usd is None else made.spec.ranks * card.price_per_hour_usd
