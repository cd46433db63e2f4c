"""PURE: from a memory model and a card to figures: peaks, the largest batch size, the safe one.

An allocator need not fit every size below one that fits: a size counts only if the few below it fit, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from ..errors import SpecError
from ..settings.ranks import emulation
from ..settings.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec
from ..settings.training_spec import (
    check_device_memory,
    check_expandable_segments,
    check_precision,
    named_by_profile,
)
from ..text.units import format_bytes
from .batch_model import MemoryModel, Recording
from .explain import what_fills
from .gpus import Gpu
from .known_errors import known_error, margin_fraction
from .replay import Replays, card_of
from .types import Estimate, EstimateAt, EstimatedGpu, Limit, safe_bytes

_ATTENTION_KERNEL = re.compile(r"_scaled_dot_product_(\w+)_attention")
NEAR = 32
"""A size is near another if they differ by less than size / NEAR."""
PREDECESSORS = 3
"""The number of sizes below the largest that must fit as well."""


def check(spec: RunSpec, gpu: Gpu | None) -> None:
    """Raise SpecError for settings that the engine would refuse on this card."""
    name = "the CPU" if gpu is None else gpu.name
    if gpu is None and spec.ranks > 1:
        raise SpecError("ranks", "several ranks are estimated for GPUs; name one of the catalogue")
    with named_by_profile(spec):
        check_precision(spec.precision, name, None if gpu is None else gpu.compute_capability)
        check_expandable_segments(spec, gpu is not None)
        check_device_memory(spec, "cpu" if gpu is None else "cuda")
    limit = spec.memory_limit_bytes
    if gpu is not None and limit is not None and limit > gpu.total_bytes:
        text = f"{format_bytes(limit)} is above what {name} has ({format_bytes(gpu.total_bytes)})"
        raise SpecError("memory_limit_bytes", text)


def kernels_of_attention(recording: Recording) -> tuple[str, ...]:
    """Return which kernels compute attention: "flash", "efficient", "cudnn" or "math"."""
    operators = {block.operator for block in recording.skeleton.blocks}
    return tuple(sorted(match[1] for name in operators if (match := _ATTENTION_KERNEL.fullmatch(name))))


def limit_bytes_of(spec: RunSpec, gpu: Gpu | None) -> int:
    """Return what the process may reserve: the card less what lies beside it, or the memory limit if that is less."""
    if gpu is None:
        return spec.memory_limit_bytes or CPU_DEFAULT_LIMIT_BYTES
    room_bytes = max(gpu.total_bytes - gpu.context_bytes - communication_bytes(spec), 0)
    return room_bytes if spec.memory_limit_bytes is None else min(spec.memory_limit_bytes, room_bytes)


def communication_bytes(spec: RunSpec) -> int:
    """Return what the library by which several GPUs exchange takes on each, outside the allocator: none on one GPU."""
    if spec.ranks == 1:
        return 0
    given = spec.communication_bytes
    return emulation.communication_bytes(spec.ranks) if given is None else given


def estimate_at(
    model: MemoryModel,
    gpu: Gpu | None,
    batch_size: int,
    limit_bytes: int | None = None,
    *,
    replays: Replays | None = None,
    beside_bytes: int = 0,
) -> EstimateAt:
    """Return the memory of `batch_size`, without the limit if it does not fit; `beside_bytes`: communication's."""
    replays = replays or Replays(model)
    fits = limit_bytes is None or replays.fits(gpu, batch_size, limit_bytes)
    peak = replays.explained(gpu, batch_size, limit_bytes if fits else None)
    block, used_bytes = peak.block, None
    if gpu is not None and peak.reserved_bytes is not None:
        used_bytes = peak.reserved_bytes + gpu.context_bytes + beside_bytes
    return EstimateAt(
        batch_size=batch_size,
        fits=fits,
        peak_allocated_bytes=peak.allocated_bytes,
        peak_reserved_bytes=peak.reserved_bytes,
        device_used_bytes=used_bytes,
        phase=block.phase if block else None,
        operator=block.operator if block else None,
        by_kind=peak.by_kind,
    )


def largest_batch_size(
    model: MemoryModel, gpu: Gpu | None, limit_bytes: int, maximum: int, *, replays: Replays | None = None
) -> int:
    """Return the largest size up to `maximum` that fits, with the few below it; 0 where batch 1 does not fit."""
    replays = replays or Replays(model)
    guess = _first_guess(replays, gpu, limit_bytes, maximum)
    return _largest(cache(lambda size: replays.fits(gpu, size, limit_bytes)), guess, maximum)


def safe_batch_size(replays: Replays, gpu: Gpu | None, limit_bytes: int, margin: float, largest: int) -> int:
    """Return the largest size that fits with `margin` more of everything, without releasing a cached segment."""
    if largest == 0:
        return 0
    room_bytes = safe_bytes(limit_bytes, margin)
    guess = _first_guess(replays, gpu, room_bytes, largest)
    return _largest(lambda size: replays.peak_bytes(gpu, size) <= room_bytes, guess, largest)


def _largest(fits: Callable[[int], bool], guess: int, maximum: int) -> int:
    if not fits(1):
        return 0
    low, high = _bracket(fits, guess, maximum)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _with_predecessors(fits, low)


def _first_guess(replays: Replays, gpu: Gpu | None, limit_bytes: int, maximum: int) -> int:
    """Return where the line through the two replays nearest to the limit meets it, after at most one more replay."""
    if maximum == 1:
        return 1
    for size in (1, maximum) if maximum <= 8 else (8, min(64, maximum)):
        replays.peak_bytes(gpu, size)
    guess = _meets(replays.known(gpu), limit_bytes, maximum)
    known = replays.known(gpu)
    if min(abs(guess - size) for size in known) > guess // NEAR:
        replays.peak_bytes(gpu, guess)
        guess = _meets(replays.known(gpu), limit_bytes, maximum)
    return guess


def _meets(known: Mapping[int, int], limit_bytes: int, maximum: int) -> int:
    """Return the size at which the line through the two peaks nearest to the limit reaches it."""
    (one, one_bytes), (other, other_bytes) = sorted(known.items(), key=lambda item: abs(item[1] - limit_bytes))[:2]
    if one_bytes == other_bytes:
        return min(max(one, other), maximum)
    meets = one + (limit_bytes - one_bytes) * (other - one) // (other_bytes - one_bytes)
    return max(min(meets, maximum), 1)


def _bracket(fits: Callable[[int], bool], guess: int, maximum: int) -> tuple[int, int]:
    """Find a size that fits and a larger one that does not, by strides from the guess. `maximum + 1` never fits."""
    low, high, stride = 1, maximum + 1, max(guess // 256, 1)
    if fits(guess):
        low = guess
        while low + stride <= maximum:
            if not fits(low + stride):
                return low, low + stride
            low, stride = low + stride, stride * 2
        return low, high
    high = guess
    while high - stride > 1:
        if fits(high - stride):
            return high - stride, high
        high, stride = high - stride, stride * 2
    return low, high


def _with_predecessors(fits: Callable[[int], bool], size: int) -> int:
    """Return `size`, or the next below it that fits together with the few sizes below itself."""
    largest = tried = size
    while tried > 0 and largest - tried <= PREDECESSORS:
        if not fits(tried):
            largest = tried - 1
        tried -= 1
    return largest


def estimate(
    spec: RunSpec,
    gpu: Gpu | None,
    model: MemoryModel,
    *,
    seconds: float,
    versions: dict[str, str | None],
    batch_sizes: tuple[int, ...] = (),
    cpu_name: str = "CPU",
    replays: Replays | None = None,
    explains: bool = False,
) -> Estimate:
    """Return one card's answer for today's, the safe, largest and requested sizes; `explains`: with a breakdown."""
    check(spec, gpu)
    replays = replays or Replays(model)
    limit_bytes, margin = limit_bytes_of(spec, gpu), margin_fraction(spec, gpu)
    largest = largest_batch_size(model, gpu, limit_bytes, spec.max_batch_size, replays=replays)
    safe = safe_batch_size(replays, gpu, limit_bytes, margin, largest)
    sizes = sorted({*batch_sizes, spec.current_batch_size, safe or 1, largest or 1})
    facts = EstimatedGpu("cpu", cpu_name, limit_bytes, context_bytes=0, calibrated=False)
    if gpu is not None:
        facts = EstimatedGpu(gpu.id, gpu.name, gpu.total_bytes, gpu.context_bytes, gpu.calibrated)
    limits: Limit = "max_batch_size" if largest == spec.max_batch_size else "memory"
    breakdown = None
    if explains:
        explained = model.at(min(largest + 1, spec.max_batch_size))
        breakdown = what_fills(explained, replays.memory(gpu, limit_bytes, explained), card_of(gpu), limit_bytes)
    library_bytes = communication_bytes(spec)

    def at(size: int) -> EstimateAt:
        return estimate_at(model, gpu, size, limit_bytes, replays=replays, beside_bytes=library_bytes)

    return Estimate(
        spec=spec,
        gpu=facts,
        limit_bytes=limit_bytes,
        largest_batch_size=largest,
        safe_batch_size=safe,
        margin_fraction=margin,
        at=tuple(map(at, sizes)),
        limits=limits if largest else "does_not_fit",
        method=model.method,
        known_error=known_error(spec, gpu),
        seconds=seconds,
        versions=versions,
        expandable_segments=replays.expandable_segments,
        approximate_because=model.approximate_because,
        breakdown=breakdown,
        communication_bytes=library_bytes,
        attention_kernels=kernels_of_attention(model.at(safe or 1)) if gpu else (),
        window_tokens=spec.workload.window_tokens,
    )
