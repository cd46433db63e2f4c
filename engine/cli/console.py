"""The output of the command line: live lines during a run, and the summary at its end."""

from __future__ import annotations

from typing import Any, TextIO

from ..advice.document import advise, basis_of_result
from ..advice.text import short_lines
from ..memory_breakdown import MemoryBreakdown, describe_entry, describe_moment
from ..progress import PHASE_LABELS
from ..result import CPU_COUNTS_TENSORS, Point, Probe, Purpose, Reason, RecommendedBy, RunResult
from ..search.does_not_fit import describe_need, refusing_probe, suggestions
from ..search.reserve import allowed_bytes
from ..spec import RunSpec
from ..units import GIB, format_bytes
from .refused import change_lines_after

RULE = "=" * 60
ENTRIES_SHOWN = 3
CLEAR_LINE = "\r\x1b[K"


class Console:
    """Prints events as they come: a progress line on a terminal, plain lines anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] in ("probe_started", "progress", "stage") and self.is_terminal:
            self._write(f"{CLEAR_LINE}{live_line(event)}", end="")
        line = event_line(event)
        if line is not None:
            self._write(f"{CLEAR_LINE if self.is_terminal else ''}{event['seconds']:7.1f}s  {line}")

    def _write(self, text: str, end: str = "\n") -> None:
        self.stream.write(text + end)
        self.stream.flush()


def live_line(event: dict[str, Any]) -> str:
    """Return the line shown until the next one: ``  batch 16 (search) ... timing, step 7``."""
    if event["event"] == "stage":
        return f"  {event['stage']} ..."
    where = f" {event['stage']}, step {event['step']}" if event["event"] == "progress" else ""
    return f"  batch {event['batch_size']} ({event['purpose']}) ...{where}"


def event_line(event: dict[str, Any]) -> str | None:
    """Return the line for an event; None for events without a line."""
    if event["event"] == "device":
        device = event["device"]
        limit = device["limit_bytes"]
        return f"{device['device']}: {device['name']}, limit {format_bytes(limit)}" if limit else device["name"]
    if event["event"] == "phase":
        return PHASE_LABELS.get(str(event["phase"]), str(event["phase"]))
    if event["event"] == "log":
        return str(event["message"])
    if event["event"] == "estimate":
        return estimate_line(event["estimate"])
    return probe_line(Probe.from_dict(event["probe"])) if event["event"] == "probe" else None


def estimate_line(estimate: dict[str, Any]) -> str:
    """Write ``ESTIMATE: largest batch 512, safe 488 (0.8 % more memory is allowed for)``."""
    if not estimate["largest_batch_size"]:
        return "ESTIMATE: not even batch 1 fits"
    largest, safe, margin = (estimate[name] for name in ("largest_batch_size", "safe_batch_size", "margin_fraction"))
    because = estimate.get("approximate_because")
    approximate = f" (approximate, because {because})" if because else ""
    safe_part = f"{safe or 'none'} would still fit with {margin:.1%} more memory"
    return f"ESTIMATE: largest batch {largest}; {safe_part}{approximate}"


def probe_line(probe: Probe) -> str:
    """Write ``batch 16   fits            506.1 MiB      11.3 samples/s  (search)``."""
    if not probe.fits:
        where = f" in {probe.failed_phase}" if probe.failed_phase else ""
        outcome = str(probe.outcome).replace("_", " ")
        return f"batch {probe.batch_size:<6} {outcome}{where}  ({probe.purpose})"
    if probe.purpose is Purpose.TIMING:  # its memory was measured by an earlier probe
        return f"batch {probe.batch_size:<6} timed {'':>13} {probe.samples_per_second or 0:10.1f} samples/s"
    memory = "not measured" if probe.memory_bytes is None else format_bytes(probe.memory_bytes)
    speed = f"{probe.samples_per_second:10.1f} samples/s" if probe.samples_per_second else f"{probe.steps:10} steps"
    return f"batch {probe.batch_size:<6} fits {memory:>14} {speed}  ({probe.purpose})"


def summary(result: RunResult) -> str:
    """Return the summary of a run. Its format is a published contract (GB means GiB there)."""
    lines = [
        RULE,
        f"■ MemoryMark Results - {result.spec.model.upper()} on {result.device.kind.upper()}",
        RULE,
        f"Optimal batch size: {_optimal(result)}",
        f"Current batch size: {result.spec.current_batch_size}",
        f"Waste: {_waste(result)}",
        f"Speedup: {_speedup(result)}",
        f"Savings: {_savings(result)}",
        RULE,
    ]
    return "\n".join(lines)


def certificate(result: RunResult) -> str:
    """Return the evidence of the result, in one sentence."""
    boundary = result.boundary
    largest = boundary.largest_batch_size
    if boundary.reason is Reason.DOES_NOT_FIT:
        return f"Does not fit: batch 1 ran out of memory ({boundary.refusal})."
    if boundary.certified:
        return (
            f"Certified: {largest} trained {boundary.soak_steps} steps in a fresh process; "
            f"{boundary.refused_batch_size} ran out of memory there."
        )
    if boundary.reason is Reason.ONE_SIZE:
        return check_answer(result)
    why = {
        Reason.SIZE_LIMIT: f"{boundary.refused_batch_size} hit a limit that is not memory ({boundary.refusal})",
        Reason.ERROR: f"{boundary.refused_batch_size} failed twice for another reason ({boundary.refusal})",
        Reason.FOREIGN_MEMORY: "other processes held memory of the device",
        Reason.MAX_BATCH_SIZE: "the largest size allowed was reached before the memory limit",
        Reason.TIME_BUDGET: "the time budget ended first",
    }[boundary.reason]
    return f"Not certified: {largest or 'no batch size'} trained; {why}."


def check_answer(result: RunResult) -> str:
    """Return the answer of a check in one sentence, with what was run: "Batch 32 fits: ..."."""
    size, boundary = result.spec.check_batch_size, result.boundary
    if result.fits is None:
        why = "the time budget ended first" if boundary.reason is Reason.TIME_BUDGET else boundary.note
        return f"Batch {size}: not known, {why or 'it was not run to its end'}."
    if not result.fits:
        why = "ran out of memory" if boundary.reason is Reason.ONE_SIZE else "hit a limit that is not memory"
        return f"Batch {size} does not fit: it {why} in a fresh process ({boundary.refusal})."
    used = result.largest.memory_bytes if result.largest else None
    limit = format_bytes(result.device.limit_bytes or result.device.capacity_bytes)
    took = "" if used is None else f"; it took {format_bytes(used)} of {limit}"
    return f"Batch {size} fits: it trained {boundary.soak_steps} steps in a fresh process{took}."


def _optimal(result: RunResult) -> str:
    if result.recommended is not None:
        return str(result.recommended.batch_size)
    return "none, does not fit at batch 1" if result.boundary.reason is Reason.DOES_NOT_FIT else "not measured"


def _waste(result: RunResult) -> str:
    waste = result.waste
    if waste.at_recommended_bytes is None or waste.at_recommended_fraction is None:
        return "not measured"
    return f"{waste.at_recommended_bytes / GIB:.1f}GB ({waste.at_recommended_fraction:.1%})"


def is_same_speed(result: RunResult) -> bool:
    """Whether the interval of the speed-up includes 1: then no speed-up is claimed."""
    return result.speedup_low is not None and result.speedup_low <= 1 <= (result.speedup_high or 0)


def _speedup(result: RunResult) -> str:
    if is_same_speed(result):
        return "1.0x"
    return "not measured" if result.speedup is None else f"{result.speedup:.1f}x"


def _savings(result: RunResult) -> str:
    per_run, per_year = result.savings.per_run_usd, result.savings.per_year_usd
    if per_run is None or per_year is None:
        return "not measured"
    if is_same_speed(result):
        per_run = per_year = 0.0
    return f"{_usd(per_run)}/run, {_usd(per_year)}/year"


def _usd(amount: float) -> str:
    return f"-${-amount:.2f}" if round(amount, 2) < 0 else f"${abs(amount):.2f}"


def details(result: RunResult) -> str:
    """Return further lines: the largest and fastest sizes, the certificate, the time of each part."""
    timings = result.timings
    spent = (
        f"imports {timings.import_seconds:.1f} s, model {timings.model_seconds:.1f} s, "
        f"estimate {timings.estimate_seconds:.1f} s, search {timings.search_seconds:.1f} s, "
        f"soak {timings.soak_seconds:.1f} s, curve {timings.curve_seconds:.1f} s, "
        f"timing {timings.timing_seconds:.1f} s, what filled it {timings.explaining_seconds:.1f} s"
    )
    lines = [certificate(result), *_certificate_limits(result), *filled_lines(result.memory_breakdown)]
    lines += [*_ways_to_fit(result), *change_lines_after(result), *_estimated(result)]
    if result.boundary.note:
        lines.append(f"Note: {result.boundary.note}.")
    points = (("Largest", result.largest), ("Fastest", result.fastest), ("Recommended", result.recommended))
    lines += [_point_line(name, point) for name, point in points if point is not None]
    lines += [*_samples_of_a_step(result), *_speed_lines(result), *_advice_lines(result)]
    return "\n".join([*lines, f"Took {timings.total_seconds:.1f} s in {timings.processes} processes: {spent}."])


def _advice_lines(result: RunResult) -> list[str]:
    """Return what keeps a global batch, for a model of the catalogue; nothing where no size is recommended."""
    points = (result.largest, result.fastest, result.recommended, result.current)
    is_measurable = result.speed is not None and result.speed.is_measurable
    spec = result.spec.to_dict()
    basis = basis_of_result(
        spec, result.device, result.recommended, result.probes, points, is_speed_measurable=is_measurable
    )
    return [] if basis is None or not isinstance(result.spec, RunSpec) else short_lines(advise(basis))


def filled_lines(breakdown: MemoryBreakdown | None) -> list[str]:
    """Return what filled the memory: the moment, the largest entries, and what is lost to fragmentation."""
    if breakdown is None:
        return []
    largest = [f"  {describe_entry(entry, breakdown)}" for entry in breakdown.entries[:ENTRIES_SHOWN]]
    cached = breakdown.cached_bytes
    lost = [f"  {format_bytes(cached)} more are reserved and in pieces too small for it."] if cached else []
    return [describe_moment(breakdown), *largest, *lost]


def _certificate_limits(result: RunResult) -> list[str]:
    """Return the limits of the certificate."""
    return [CPU_COUNTS_TENSORS] if result.device.kind == "cpu" else []


def _ways_to_fit(result: RunResult) -> list[str]:
    """Return how much memory a model that does not fit needed, and suggestions."""
    if result.boundary.reason is not Reason.DOES_NOT_FIT:
        return []
    spec, device = result.spec, result.device
    refusal = refusing_probe(result.probes, result.boundary.refused_batch_size)
    need = describe_need(refusal, device.limit_bytes or device.capacity_bytes)
    if not isinstance(spec, RunSpec):  # of a command nothing is known that could be set otherwise
        return [need] if need else []
    tries = suggestions(
        refusal, spec.workload, device, optimizer=spec.optimizer, is_checkpointed=spec.gradient_checkpointing
    )
    return [*([need] if need else []), "Ways to make it fit:", *(f"  {line}" for line in tries)]


def _estimated(result: RunResult) -> list[str]:
    """``Estimated: largest 512; measured 508.`` with the error of its memory, where there was an estimate."""
    if result.estimate is None:
        return []
    measured = result.boundary.largest_batch_size
    text = f"Estimated: largest {result.estimate['largest_batch_size']}; measured {measured or 'none'}"
    error = result.estimate_error.peak if result.estimate_error else None
    return [f"{text}." if error is None else f"{text}. Error of its estimated memory: {error:+.1%}."]


def _point_line(name: str, point: Point) -> str:
    memory = "not measured" if point.memory_bytes is None else format_bytes(point.memory_bytes)
    speed = f"{point.samples_per_second:.1f} samples/s" if point.samples_per_second else "speed not measured"
    if point.samples_per_second_low is not None and point.samples_per_second_high is not None:
        speed += f" [{point.samples_per_second_low:.1f}, {point.samples_per_second_high:.1f}]"
    return f"{name + ':':<13}{point.batch_size:>6}  {memory:>10}  {speed}"


def _samples_of_a_step(result: RunResult) -> list[str]:
    """Return the global batch where gradients are accumulated: speeds count all its samples."""
    spec, point = result.spec, result.recommended
    if not isinstance(spec, RunSpec) or spec.accumulation_steps == 1 or point is None:
        return []
    total = spec.accumulation_steps * point.batch_size
    return [f"An optimizer step: {spec.accumulation_steps} x {point.batch_size} = {total} samples."]


def _speed_lines(result: RunResult) -> list[str]:
    """Return speed-up and savings with their intervals and assumptions, or the reason why there are none."""
    speed = result.speed
    if speed is None:
        return []
    lines = [] if speed.reason is None else [f"{speed.reason[:1].upper()}{speed.reason[1:]}."]
    if speed.recommended_by is RecommendedBy.MEMORY_RESERVE:
        lines.append(_recommended_by_memory(result, speed.reserve_fraction))
    if speed.is_measurable and result.speedup is not None:
        lines += [_speedup_line(result), _money_line(result)]
    if speed.others_cores is not None and speed.cores:
        lines.append(f"While timing, other work used {speed.others_cores:.1f} of {speed.cores} cores.")
    return lines


def _recommended_by_memory(result: RunResult, reserve_fraction: float) -> str:
    limit_bytes = result.device.limit_bytes or result.device.capacity_bytes
    taken_bytes = result.recommended.memory_bytes if result.recommended is not None else None
    if taken_bytes is not None and taken_bytes > allowed_bytes(limit_bytes, reserve_fraction):
        return f"Recommended by memory alone: no measured size leaves {reserve_fraction:.0%} free."
    return f"Recommended by memory alone: the largest measured size that leaves {reserve_fraction:.0%} free."


def _speedup_line(result: RunResult) -> str:
    """Write ``Speed-up: 1.39x [1.36, 1.42] over 16 (95 % interval of 6 rounds).``."""
    assert result.speed is not None
    if result.recommended is not None and result.recommended.batch_size == result.spec.current_batch_size:
        return f"Speed-up: none, {result.spec.current_batch_size} is the recommended size already."
    text = "the same speed, " if is_same_speed(result) else ""
    interval = f"{result.speedup:.2f}x [{result.speedup_low:.2f}, {result.speedup_high:.2f}]"
    over = f"over {result.spec.current_batch_size}"
    return (
        f"Speed-up: {text}{interval} {over} ({result.speed.confidence:.0%} interval of {result.speed.rounds} rounds)."
    )


def _money_line(result: RunResult) -> str:
    """Write ``Savings, assuming $0.60/h, 2 h a run, 100 runs a year: $33.67/year [$31.76, $35.49].``."""
    money = result.savings
    assumed = (
        f"{_usd(money.price_per_hour_usd)}/h, {money.hours_per_run:g} h a run, {money.runs_per_year:,} runs a year"
    )
    if money.per_year_usd is None or money.per_year_usd_low is None or money.per_year_usd_high is None:
        return f"Savings, assuming {assumed}: not measured."
    interval = f"[{_usd(money.per_year_usd_low)}, {_usd(money.per_year_usd_high)}]"
    return f"Savings, assuming {assumed}: {_usd(money.per_year_usd)}/year {interval}."
