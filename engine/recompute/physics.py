"""PURE: figures that no machine can have measured, whatever follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from statistics import median
from typing import Any

from ..result import DeviceFacts, Probe, Purpose
from ..spec import CPU_DEFAULT_LIMIT_BYTES, MEMORY_STEPS, RunSpec
from ..units import MIB
from ..validation.spec import ValidationSpec
from .boundary import is_refused_for_memory, searched, soak_steps
from .contradiction import Contradiction, is_same
from .document import Claims, Spec

LEAST_STEP_SECONDS = 1e-7
"""Shorter than one call of a library: no optimizer step."""
SLACK_SECONDS = 0.05
"""Several clocks take part in the seconds of a run."""
OVERCOMMITTED = 2
"""A host may promise so many times what it has to a step that is refused, which need not touch all of it."""
DRIVER_COUNTS = 1 + 1 / 64
"""What a driver counts of a card can be a little more than what the card's properties name."""


def impossible_figures(claims: Claims) -> Iterator[Contradiction]:
    """Yield what cannot be, of the device, of each probe, and of the probes together."""
    yield from impossible_device(claims.device, claims.spec, claims.raw["device"])
    for number, probe in enumerate(claims.probes):
        path = f"probes[{number}]"
        yield from _sizes(path, probe, claims)
        yield from _memory(path, probe, claims)
        yield from _times(path, probe, claims)
    yield from _fits_above_refusal(claims)
    yield from _longer_than_the_run(claims)
    yield from _breakdown(claims)


def impossible_device(
    device: DeviceFacts, spec: Spec | ValidationSpec, raw: Mapping[str, Any]
) -> Iterator[Contradiction]:
    """Yield what of a device is not as its spec requests it."""
    limit = spec.memory_limit_bytes
    if device.capacity_bytes < 1:
        yield Contradiction("device.capacity_bytes", device.capacity_bytes, "at least 1")
    wanted = spec.device.partition(":")[0]
    if wanted not in ("auto", device.kind) or device.device.partition(":")[0] != device.kind:
        yield Contradiction("device.device", device.device, spec.device)
    allowed: tuple[int | None, ...] = (limit,)
    if limit is None:
        by_default = min(CPU_DEFAULT_LIMIT_BYTES, device.capacity_bytes)
        allowed = (by_default,) if device.kind == "cpu" else (None, device.capacity_bytes)
    if device.limit_bytes not in allowed:
        yield Contradiction("device.limit_bytes", device.limit_bytes, allowed[0])
    claimed = raw.get("is_shared", device.is_shared)
    if claimed is not device.is_shared:
        yield Contradiction("device.is_shared", claimed, device.is_shared)


def _sizes(path: str, probe: Probe, claims: Claims) -> Iterator[Contradiction]:
    if not 1 <= probe.batch_size <= claims.spec.max_batch_size:
        yield Contradiction(f"{path}.batch_size", probe.batch_size, [1, claims.spec.max_batch_size])
    for name in ("steps", "allocator_retries"):
        if (getattr(probe, name) or 0) < 0:
            yield Contradiction(f"{path}.{name}", getattr(probe, name), 0)
    if probe.purpose is Purpose.SOAK and not probe.fresh_process:
        yield Contradiction(f"{path}.fresh_process", False, True)
    if not probe.fits or probe.purpose is Purpose.TIMING:
        return
    least = MEMORY_STEPS
    if probe.purpose is Purpose.SOAK and isinstance(claims.spec, RunSpec):
        least = soak_steps(claims.spec, claims.device)
    if probe.steps < least:
        yield Contradiction(f"{path}.steps", probe.steps, least)
    if probe.memory_bytes is None:
        yield Contradiction(f"{path}.peak_allocated_bytes", None, "the peak of the steps")
    if probe.error_type is not None or probe.failed_phase is not None:
        yield Contradiction(f"{path}.error_type", probe.error_type, None)


def _memory(path: str, probe: Probe, claims: Claims) -> Iterator[Contradiction]:
    device, allocated, reserved = claims.device, probe.peak_allocated_bytes, probe.peak_reserved_bytes
    most = claims.limit_bytes if device.kind == "cpu" else device.capacity_bytes
    reached = most
    if not probe.fits:
        reached = OVERCOMMITTED * device.capacity_bytes
    elif device.kind == "cuda":
        reached = claims.limit_bytes + MIB  # the limit is given to the allocator as a fraction
    for name, held in (("peak_allocated_bytes", allocated), ("peak_reserved_bytes", reserved)):
        if held is not None and held > reached:
            yield Contradiction(f"{path}.{name}", held, reached)
    for name in ("device_used_bytes", "beside_bytes"):
        used = getattr(probe, name)
        if used is not None and used > device.capacity_bytes * DRIVER_COUNTS:
            yield Contradiction(f"{path}.{name}", used, device.capacity_bytes)
    if allocated is not None and reserved is not None and allocated > reserved:
        yield Contradiction(f"{path}.peak_allocated_bytes", allocated, reserved)
    if probe.error_type == "BudgetExceeded" and (allocated or 0) <= most:
        yield Contradiction(f"{path}.peak_allocated_bytes", allocated, f"more than {most}")
    if probe.memory_by_kind is not None and allocated is not None:
        yield from _kinds(path, probe, device)


def _kinds(path: str, probe: Probe, device: DeviceFacts) -> Iterator[Contradiction]:
    """Of a CPU the kinds are of the very step of the peak; a card's are of another step, without rounding."""
    assert probe.memory_by_kind is not None
    together, peak = sum(astuple(probe.memory_by_kind)), probe.peak_allocated_bytes or 0
    is_exact = device.kind == "cpu"
    if together > device.capacity_bytes or (is_exact and together != peak):
        yield Contradiction(f"{path}.memory_by_kind", together, peak)


def _times(path: str, probe: Probe, claims: Claims) -> Iterator[Contradiction]:
    timed, seconds = probe.timed_step_seconds, probe.step_seconds
    for place, each in enumerate(timed):
        if each < LEAST_STEP_SECONDS:
            yield Contradiction(f"{path}.timed_step_seconds[{place}]", each, LEAST_STEP_SECONDS)
            return
    if sum(timed) > probe.wall_seconds + SLACK_SECONDS:
        yield Contradiction(f"{path}.wall_seconds", probe.wall_seconds, sum(timed))
    if seconds is None or probe.samples_per_second is None:
        if seconds is not None or probe.samples_per_second is not None:
            yield Contradiction(f"{path}.samples_per_second", probe.samples_per_second, None)
        return
    if seconds < LEAST_STEP_SECONDS or not timed:
        yield Contradiction(f"{path}.step_seconds", seconds, "the median of timed steps")
        return
    if probe.purpose is not Purpose.TIMING and not is_same(seconds, median(timed)):
        yield Contradiction(f"{path}.step_seconds", seconds, median(timed))
    samples = _samples_of_a_step(probe, claims)
    if not is_same(probe.samples_per_second * seconds, samples):
        yield Contradiction(f"{path}.samples_per_second", probe.samples_per_second, samples / seconds)


def _samples_of_a_step(probe: Probe, claims: Claims) -> int:
    """Return the samples of all ranks and micro-batches; of a command as many whole batches as come nearest."""
    if isinstance(claims.spec, RunSpec):
        return probe.batch_size * claims.spec.accumulation_steps
    assert claims.training is not None
    batches = round((probe.samples_per_second or 0) * (probe.step_seconds or 0) / max(probe.batch_size, 1))
    if probe.batch_size == claims.boundary.largest_batch_size:
        batches = claims.training.micro_batches * claims.training.ranks
    return probe.batch_size * max(batches, 1)


def _fits_above_refusal(claims: Claims) -> Iterator[Contradiction]:
    """Yield sizes that trained in the search above one that a fresh process had no memory for: it never tries these."""
    own = searched(claims.probes)
    refused = min((p.batch_size for p in own if is_refused_for_memory(p, claims)), default=None)
    for number, probe in enumerate(claims.probes):
        if refused is not None and probe.fits and probe in own and probe.batch_size >= refused:
            yield Contradiction(f"probes[{number}].outcome", probe.outcome.value, f"batch {refused} was refused")


def _longer_than_the_run(claims: Claims) -> Iterator[Contradiction]:
    timings = claims.timings
    phases = ("search", "soak", "curve", "timing", "explaining", "estimate")
    in_phases = sum(getattr(timings, f"{phase}_seconds") for phase in phases)
    if in_phases > timings.total_seconds + SLACK_SECONDS:
        yield Contradiction("timings.total_seconds", timings.total_seconds, in_phases)
    in_probes = sum(p.wall_seconds for p in claims.probes)
    in_run = timings.total_seconds + timings.carried_seconds + SLACK_SECONDS
    if in_probes > in_run:
        yield Contradiction("timings.total_seconds", timings.total_seconds, in_probes)
    if claims.speed is not None and claims.speed.seconds > timings.total_seconds + SLACK_SECONDS:
        yield Contradiction("speed.seconds", claims.speed.seconds, timings.total_seconds)


def _breakdown(claims: Claims) -> Iterator[Contradiction]:
    if (breakdown := claims.memory_breakdown) is None:
        return
    together = sum(entry.size_bytes for entry in breakdown.entries)
    if together != breakdown.total_bytes:
        yield Contradiction("memory_breakdown.total_bytes", breakdown.total_bytes, together)
    if breakdown.method != "measured":
        yield Contradiction("memory_breakdown.method", breakdown.method, "measured")
    if breakdown.total_bytes > claims.device.capacity_bytes:
        yield Contradiction("memory_breakdown.total_bytes", breakdown.total_bytes, claims.device.capacity_bytes)
