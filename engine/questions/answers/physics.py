"""PURE: finds figures that no machine can have measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from statistics import median

from ...facts.result import DeviceFacts, Probe, Purpose
from ...facts.speed_rounds import SpeedBlock
from ...race.field import Timed
from ...settings.ranks.emulation import limit_left
from ...settings.spec import CPU_DEFAULT_LIMIT_BYTES, MEMORY_STEPS, SearchSpec
from ...text.printable import is_line
from ...text.units import MIB
from ..validation.spec import ValidationSpec
from .impossible import Impossible, is_same, within
from .limits import (
    BATCH_SIZE_MOST,
    DRIVER_COUNTS,
    LEAST_COMPUTING,
    LEAST_STEP_SECONDS,
    LINE_MOST,
    MOST_COLLECTING,
    MOST_CORES,
    MOST_OTHER_PROCESSES,
    MOST_PROCESSES,
    MOST_RANKS,
    ONE_LINE,
    OVERCOMMITTED,
    SLACK_SECONDS,
)
from .parts import estimate_of_others, impossible_breakdown, impossible_estimate
from .size_facts import SizeFacts

_TEXTS_OF_A_DEVICE = {"device": 20, "kind": 10, "name": LINE_MOST, "uuid": 100, "driver": 100, "compute_capability": 20}
"""By the longest that the portal's database holds."""
MOST_PID = 2**32
_MOST_SAMPLES_PER_SECOND = BATCH_SIZE_MOST * MOST_RANKS / LEAST_STEP_SECONDS


def impossible_figures(facts: SizeFacts) -> Iterator[Impossible]:
    yield from impossible_device(facts.device, facts.spec)
    for number, probe in enumerate(facts.probes):
        path = f"probes[{number}]"
        yield from _sizes(path, probe, facts)
        yield from _memory(path, probe, facts)
        yield from _times(path, probe, facts)
    yield from _fits_above_refusal(facts)
    yield from _longer_than_the_run(facts)
    yield from _other_work(facts)
    if facts.stored.memory_breakdown is not None:
        yield from impossible_breakdown(facts, facts.stored.memory_breakdown)
    if facts.stored.estimate is not None:
        yield from impossible_estimate(facts.stored.estimate)
        yield from estimate_of_others(facts, facts.stored.estimate)


def impossible_facts(device: DeviceFacts) -> Iterator[Impossible]:
    """Yield what no device can be, whatever was run on it: its texts, its memory, who else used it."""
    texts = {name: getattr(device, name) for name in _TEXTS_OF_A_DEVICE}
    processes = [each.get("name") for each in device.foreign_processes]
    texts |= {f"foreign_processes[{number}].name": name for number, name in enumerate(processes)}
    for name, text in texts.items():
        most = _TEXTS_OF_A_DEVICE.get(name, LINE_MOST)
        is_left_out = text is None and name not in ("device", "kind", "name")
        if not is_left_out and not (isinstance(text, str) and is_line(text, most)):
            yield Impossible(f"device.{name}", text, ONE_LINE.format(most))
    for name, least in (("capacity_bytes", 1), ("limit_bytes", 1), ("foreign_used_bytes", 0), ("beside_bytes", 0)):
        held = getattr(device, name)
        if held is not None and not least <= held < 2**63:
            yield Impossible(f"device.{name}", held, f"at least {least}")
    if len(processes) > MOST_OTHER_PROCESSES:
        yield Impossible("device.foreign_processes", len(processes), MOST_OTHER_PROCESSES)
    most_bytes = int(max(device.capacity_bytes, 0) * DRIVER_COUNTS)
    for number, each in enumerate(device.foreign_processes):
        for name, most in (("pid", MOST_PID), ("used_bytes", most_bytes)):
            held = each.get(name)
            is_whole = isinstance(held, int) and not isinstance(held, bool)
            if held is not None and not (is_whole and 0 <= held <= most):
                yield Impossible(f"device.foreign_processes[{number}].{name}", held, [0, most])


def impossible_place(device: DeviceFacts, requested: str) -> Iterator[Impossible]:
    """Yield what no device can be, and a device other than the requested one."""
    yield from impossible_facts(device)
    wanted = requested.partition(":")[0]
    if wanted not in ("auto", device.kind) or device.device.partition(":")[0] != device.kind:
        yield Impossible("device.device", device.device, requested)


def impossible_device(device: DeviceFacts, spec: SearchSpec | ValidationSpec) -> Iterator[Impossible]:
    """Yield what no device can be, and facts of the device that contradict its spec."""
    yield from impossible_place(device, spec.device)
    limit = spec.memory_limit_bytes
    allowed: tuple[int | None, ...] = (limit,)
    if limit is None:
        by_default = min(CPU_DEFAULT_LIMIT_BYTES, device.capacity_bytes)
        allowed = (by_default,) if device.kind == "cpu" else (None, device.capacity_bytes)
    if device.kind != "cpu" and (left := limit_left(spec.emulated_ranks, limit, device.capacity_bytes)) != limit:
        allowed = (left,)
    if device.limit_bytes not in allowed:
        yield Impossible("device.limit_bytes", device.limit_bytes, allowed[0])


def _sizes(path: str, probe: Probe, facts: SizeFacts) -> Iterator[Impossible]:
    yield from within(f"{path}.batch_size", probe.batch_size, 1, facts.spec.max_batch_size)
    for name in ("steps", "allocator_retries"):
        if (getattr(probe, name) or 0) < 0:
            yield Impossible(f"{path}.{name}", getattr(probe, name), 0)
    if probe.purpose is Purpose.SOAK and not probe.fresh_process:
        yield Impossible(f"{path}.fresh_process", False, True)
    if not probe.fits or probe.purpose is Purpose.TIMING:
        return
    least = facts.least_soak_steps() if probe.purpose is Purpose.SOAK else MEMORY_STEPS
    if probe.steps < least:
        yield Impossible(f"{path}.steps", probe.steps, least)
    if probe.memory_bytes is None:
        yield Impossible(f"{path}.peak_allocated_bytes", None, "the peak of the steps")
    if probe.error_type is not None or probe.failed_phase is not None:
        yield Impossible(f"{path}.error_type", probe.error_type, None)


def _memory(path: str, probe: Probe, facts: SizeFacts) -> Iterator[Impossible]:
    device, allocated, reserved = facts.device, probe.peak_allocated_bytes, probe.peak_reserved_bytes
    most = facts.limit_bytes if device.kind == "cpu" else device.capacity_bytes
    reached = most
    if not probe.fits:
        reached = OVERCOMMITTED * device.capacity_bytes
    elif device.kind == "cuda":
        reached = facts.limit_bytes + MIB  # the limit is given to the allocator as a fraction
    for name, held in (("peak_allocated_bytes", allocated), ("peak_reserved_bytes", reserved)):
        if held is not None and held > reached:
            yield Impossible(f"{path}.{name}", held, reached)
    for name in ("device_used_bytes", "beside_bytes"):
        used = getattr(probe, name)
        if used is not None and used > device.capacity_bytes * DRIVER_COUNTS:
            yield Impossible(f"{path}.{name}", used, device.capacity_bytes)
    if allocated is not None and reserved is not None and allocated > reserved:
        yield Impossible(f"{path}.peak_allocated_bytes", allocated, reserved)
    if probe.error_type == "BudgetExceeded" and (allocated or 0) <= most:
        yield Impossible(f"{path}.peak_allocated_bytes", allocated, f"more than {most}")
    if probe.memory_by_kind is not None and allocated is not None:
        # on a CPU it is from the step of the peak; on a card from another, unrounded step
        together, is_exact = sum(astuple(probe.memory_by_kind)), device.kind == "cpu"
        if together > device.capacity_bytes or (is_exact and together != allocated):
            yield Impossible(f"{path}.memory_by_kind", together, allocated)


def _times(path: str, probe: Probe, facts: SizeFacts) -> Iterator[Impossible]:
    timed, seconds = probe.timed_step_seconds, probe.step_seconds
    for place, each in enumerate(timed):
        if each < LEAST_STEP_SECONDS:
            yield Impossible(f"{path}.timed_step_seconds[{place}]", each, LEAST_STEP_SECONDS)
            return
    if sum(timed) > probe.wall_seconds + SLACK_SECONDS:
        yield Impossible(f"{path}.wall_seconds", probe.wall_seconds, sum(timed))
    if seconds is None or probe.samples_per_second is None:
        if seconds is not None or probe.samples_per_second is not None:
            yield Impossible(f"{path}.samples_per_second", probe.samples_per_second, None)
        return
    if seconds < LEAST_STEP_SECONDS or not timed:
        yield Impossible(f"{path}.step_seconds", seconds, "the median of timed steps")
        return
    if probe.purpose is not Purpose.TIMING and not is_same(seconds, median(timed)):
        yield Impossible(f"{path}.step_seconds", seconds, median(timed))
    if not 0 < probe.samples_per_second <= _MOST_SAMPLES_PER_SECOND:
        yield Impossible(f"{path}.samples_per_second", probe.samples_per_second, [0, _MOST_SAMPLES_PER_SECOND])
        return
    samples = facts.samples_of_a_step(probe)
    if not is_same(probe.samples_per_second * seconds, samples):
        yield Impossible(f"{path}.samples_per_second", probe.samples_per_second, samples / seconds)


def _fits_above_refusal(facts: SizeFacts) -> Iterator[Impossible]:
    """Yield sizes that trained above a refused one, or after the search above every size it had trained."""
    own = [] if facts.may_starts_differ() else facts.searched
    refused = min((p.batch_size for p in own if facts.is_refused_for_memory(p)), default=None)
    after = (Purpose.CURVE, Purpose.TIMING)
    largest = max((p.batch_size for p in facts.probes if p.fits and p.purpose not in after), default=0)
    for number, probe in enumerate(facts.probes):
        if refused is not None and probe.fits and probe.batch_size >= refused:
            yield Impossible(f"probes[{number}].outcome", probe.outcome.value, f"batch {refused} was refused")
        is_today = probe.batch_size == facts.spec.current_batch_size  # measured where the search ended before it
        if probe.purpose in after and probe.batch_size > largest and not is_today:
            yield Impossible(f"probes[{number}].batch_size", probe.batch_size, largest)


def _longer_than_the_run(facts: SizeFacts) -> Iterator[Impossible]:
    timings = facts.stored.timings
    phases = ("search", "soak", "curve", "timing", "explaining", "estimate")
    in_phases = sum(getattr(timings, f"{phase}_seconds") for phase in phases)
    if in_phases > timings.total_seconds + SLACK_SECONDS:
        yield Impossible("timings.total_seconds", timings.total_seconds, in_phases)
    for name in ("import_seconds", "model_seconds"):
        if (seconds := getattr(timings, name)) > timings.total_seconds + SLACK_SECONDS:
            yield Impossible(f"timings.{name}", seconds, timings.total_seconds)
    yield from within("timings.processes", timings.processes, 0, MOST_PROCESSES)
    in_probes = sum(p.wall_seconds for p in facts.probes)
    in_run = timings.total_seconds + timings.carried_seconds + SLACK_SECONDS
    if in_probes > in_run:
        yield Impossible("timings.total_seconds", timings.total_seconds, in_probes)
    if facts.stored.speed is not None and facts.stored.speed.seconds > timings.total_seconds + SLACK_SECONDS:
        yield Impossible("speed.seconds", facts.stored.speed.seconds, timings.total_seconds)


def _other_work(facts: SizeFacts) -> Iterator[Impossible]:
    """Yield more cores than any machine has, or more cores in use than there are: pages show both."""
    if (speed := facts.stored.speed) is None:
        return
    yield from within("speed.cores", speed.cores, 1, MOST_CORES)
    yield from within("speed.others_cores", speed.others_cores, 0, speed.cores or 0)
    for number, each in enumerate(facts.stored.speed_rounds):
        for place, block in enumerate(each.blocks):
            yield from impossible_conditions(f"speed_rounds[{number}].blocks[{place}]", block)


def impossible_conditions(path: str, timed: SpeedBlock | Timed) -> Iterator[Impossible]:
    """Yield what no machine does while something is timed: the cores of others, and shares of the time."""
    yield from within(f"{path}.others_cores", timed.others_cores, 0, MOST_CORES)
    yield from within(f"{path}.computing_fraction", timed.computing_fraction, LEAST_COMPUTING, 1)
    yield from within(f"{path}.collecting_fraction", timed.collecting_fraction, 0, MOST_COLLECTING)
