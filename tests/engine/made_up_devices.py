"""Made-up memory curves of every kind a real device has shown: straight, bent, stepped, noisy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

MIB = 1024**2
KINDS = ("affine", "convex", "steps", "noise", "noisy boundary")


@dataclass(frozen=True)
class Device:
    """A made-up device: bytes by batch size, and which sizes it refuses."""

    memory: Callable[[int], int]
    fits: Callable[[int], bool]
    limit_bytes: int
    boundary: int | None


def bent_line(rng: random.Random, boundary: int, kind: str) -> Callable[[float], float]:
    """MiB by batch size: one slope, or up to three rising ones (often flat at first, as Adam's floor is)."""
    base, slope = rng.uniform(50, 4000), 10 ** rng.uniform(-1, 2.3)
    bends = [(0.0, slope)]
    if kind != "affine":
        bends = [(0.0, 0.0 if rng.random() < 0.5 else slope * rng.uniform(0.1, 0.6))]
        for _ in range(rng.randint(1, 2)):
            at = bends[-1][0] + max(1, boundary) * rng.uniform(0.005, 0.5)
            bends.append((at, max(bends[-1][1] * 1.2, slope * rng.uniform(0.3, 1))))

    def mib(batch_size: float) -> float:
        ends = [*(at for at, _ in bends[1:]), batch_size]
        return base + sum(max(min(batch_size, end) - at, 0) * s for (at, s), end in zip(bends, ends, strict=True))

    return mib


def make_device(rng: random.Random, kind: str) -> Device:
    """A random device whose boundary is drawn evenly over the magnitudes from 0 to 100,000."""
    boundary = rng.choice([0, 1, 2, 3, 100_000]) if rng.random() < 0.05 else round(10 ** rng.uniform(0, 5)) - 1
    clean = bent_line(rng, boundary, kind)
    if clean(boundary + 1) <= clean(boundary):
        return make_device(rng, kind)
    step = rng.uniform(0.5, 20) * (clean(boundary + 1) - clean(boundary)) if kind == "steps" else 0.0
    noise, seed = (rng.uniform(0, 0.01), rng.random()) if kind.startswith("nois") else (0.0, 0.0)

    def memory(batch_size: int) -> int:
        mib = clean(batch_size)
        mib = math.ceil(mib / step) * step if step else mib
        return int(MIB * mib * (1 + noise * random.Random(f"{seed} {batch_size}").uniform(-1, 1)))

    if kind == "steps":
        limit = memory(boundary) if boundary else memory(1) - 1
        while memory(boundary + 1) <= limit:
            boundary += 1
    else:
        share = rng.uniform(0.01, 0.99)
        limit = int(MIB * (clean(boundary) * (1 - share) + clean(boundary + 1) * share))
    if kind == "noisy boundary":
        return Device(memory, lambda size: memory(size) <= limit, limit, None)
    return Device(memory, lambda size: size <= boundary, limit, boundary)
