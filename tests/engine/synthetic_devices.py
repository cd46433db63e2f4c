"""Made-up memory curves of every kind a real device has shown: straight, bent, stepped, noisy."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.search.unguided import Found, Trial, Try

MIB = 1024**2
KINDS = ("affine", "convex", "steps", "noise", "noisy boundary")


@dataclass(frozen=True)
class Device:
    """A made-up device: bytes by batch size, and which sizes it refuses. `clean`: its curve without steps and noise."""

    memory: Callable[[int], int]
    fits: Callable[[int], bool]
    limit_bytes: int
    boundary: int | None
    clean: Callable[[float], float] | None = None


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

    def clean_bytes(batch_size: float) -> float:
        return MIB * clean(batch_size)

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
        return Device(memory, lambda size: memory(size) <= limit, limit, None, clean_bytes)
    return Device(memory, lambda size: size <= boundary, limit, boundary, clean_bytes)


def search(device: Device, decide: Callable[[list[Trial]], Try | Found]) -> tuple[Found, list[Trial]]:
    """Runs a whole search the way the runner does: a refused size ends its process."""
    trials: list[Trial] = []
    is_fresh = True
    while not isinstance(step := decide(trials), Found):
        assert not repeats_itself(step, trials), f"{step.batch_size} again after {trials}"
        is_fresh = is_fresh or step.fresh_process
        fits = device.fits(step.batch_size)
        trials.append(Trial(step.batch_size, fits, device.memory(step.batch_size) if fits else None, is_fresh))
        is_fresh = not fits
        assert len(trials) < 100, "the search does not end"
    return step, trials


def repeats_itself(step: Try, trials: list[Trial]) -> bool:
    """A size is tried twice only to confirm, in a fresh process, a refusal that was not from one."""
    same = [t for t in trials if t.batch_size == step.batch_size]
    return any(t.fits or t.fresh_process for t in same) or bool(same and not step.fresh_process)
