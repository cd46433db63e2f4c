"""PURE: the report of a recorded training: what it used, what lay idle, whether it lasts, and why it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..deaths.cause import Death
from ..deaths.signs import Cause
from ..deaths.words import changes
from ..deaths.words import document as death_document
from ..deaths.words import headline as death_headline
from ..program import PROGRAM
from ..text.units import format_bytes, format_percent
from .growth import Growth, growth_of
from .recording import Process, Recording

INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT)
KEPT = "Something is kept from step to step, as a loss that is added up without .item() or .detach()."
"""Why memory grows."""
ROOM = 0.95
"""The share of a card that the estimated batch size may take."""
WAITING_FRACTION = 0.1
"""From this share on the wait for data is worth a change."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a recorded training; None: not known. Sizes in bytes."""

    steps: int = 0
    seconds: float = 0.0
    device: str | None = None
    total_bytes: int | None = None
    """What the card has; None on a CPU, whose peak is that of the whole process."""
    peak_bytes: int | None = None
    waiting_fraction: float | None = None
    batch_size: int | None = None
    fitting_batch_size: int | None = None
    """Estimated from the run's own peak."""
    growth: Growth | None = None
    ends_at: tuple[int, int, int] | None = None
    host_growth: Growth | None = None
    """That of the host's memory, of a training on a card."""
    host_ends_at: tuple[int, int, int] | None = None
    death: Death | None = None

    @property
    def unused_bytes(self) -> int | None:
        """What of the card's memory was never used."""
        if self.total_bytes is None or self.peak_bytes is None:
            return None
        return self.total_bytes - self.peak_bytes


def report_of(recording: Recording) -> Report:
    process, device = recording.process, recording.device
    if process is None or device is None:
        return Report(death=_death(recording))
    growth = growth_of(process.samples, process.peak_bytes or 0)
    host_bytes = max((each[2] for each in process.host_samples), default=0)
    host_growth = growth_of(process.host_samples, host_bytes)
    total = None if device.kind == "cpu" else device.capacity_bytes
    limit = total or (process.peak_bytes or 0) + recording.free_bytes
    return Report(
        steps=process.steps,
        seconds=process.seconds,
        device=device.name,
        total_bytes=total,
        peak_bytes=process.peak_bytes,
        waiting_fraction=min(1.0, process.loading_seconds / process.seconds) if process.seconds else None,
        batch_size=process.batch_size,
        fitting_batch_size=None if total is None else _fitting(process, total),
        growth=growth,
        ends_at=growth.ends_at(limit) if growth else None,
        host_growth=host_growth,
        host_ends_at=host_growth.ends_at(host_bytes + recording.free_bytes) if host_growth else None,
        death=_death(recording),
    )


def _fitting(process: Process, total: int) -> int | None:
    """Return the batch size that the card may take, as the peak beyond what a step leaves grows with the batch."""
    peak, size, samples = process.peak_bytes, process.batch_size, process.samples
    if not (peak and size and samples) or process.death is not None:
        return None
    held = min(each[2] for each in samples[1:] or samples)
    each_bytes = (peak - held) / size
    return max(1, int((ROOM * total - held) / each_bytes)) if each_bytes > 0 else None


def was_stopped(status: int) -> bool:
    """Whether its own user stopped the command: there is nothing to explain."""
    return status in INTERRUPTED


def _death(recording: Recording) -> Death | None:
    status, process = recording.status, recording.process
    if status == 0 or was_stopped(status):
        return None
    if process is not None and process.death is not None:
        return process.death
    if status == -signal.SIGKILL and recording.oom_kills > 0:
        return Death(Cause.HOST_MEMORY, line="the kernel's out-of-memory killer ended a process meanwhile")
    if process is not None and process.refused_allocations:
        return Death(Cause.CANNOT_TELL, line="the card refused memory, and the script ended by itself after it")
    return Death(Cause.CANNOT_TELL, line=f"it ended with {_status_text(status)}")


def _status_text(status: int) -> str:
    names = {-each: each.name for each in signal.Signals}
    return names.get(status, f"signal {-status}") if status < 0 else f"exit status {status}"


def headline(report: Report) -> str:
    """Say what matters most: why it ended, else when its memory will end, else what it used."""
    if report.death is not None:
        return death_headline(report.death)
    for what, growth, ends_at in _growths(report):
        slope = format_bytes(growth.bytes_per_step)
        return f"{what} grows by {slope} a step, and will end at about step {ends_at[0]:,}."
    if report.unused_bytes is not None and report.total_bytes:
        share = format_percent(report.unused_bytes / report.total_bytes)
        return f"{share} of {format_bytes(report.total_bytes)} never used."
    return f"{format_bytes(report.peak_bytes)} at the peak." if report.peak_bytes else f"{report.steps:,} steps."


def lines(report: Report, status: int) -> list[str]:
    """Return the report in lines for a terminal."""
    growth = [f"{said} {KEPT}"] if (said := lasting(report)) else []
    return [f"MemoryMark {seen(report, status)}", *use(report), *growth, *_end(report), *next_step(report)]


def seen(report: Report, status: int) -> str:
    watched = f"watched {report.steps:,} steps" if report.steps else "saw no step of an optimizer of torch"
    return f"{watched}; the command ended with {_status_text(status)}."


def use(report: Report) -> Iterator[str]:
    if report.peak_bytes and report.total_bytes:
        unused = report.total_bytes - report.peak_bytes
        share = format_percent(unused / report.total_bytes)
        of = f"{format_bytes(report.total_bytes)} of {report.device}"
        yield f"Peak: {format_bytes(report.peak_bytes)} of {of}; {format_bytes(unused)} ({share}) never used."
    elif report.peak_bytes:
        yield f"Peak: {format_bytes(report.peak_bytes)} of the process on the CPU."
    if report.waiting_fraction is not None and report.steps > 1:
        advice = ": more loader workers help more than a larger batch" if _waits(report) else ""
        yield f"Waiting for data: {format_percent(report.waiting_fraction)} of the time{advice}."


def _waits(report: Report) -> bool:
    return report.waiting_fraction is not None and report.waiting_fraction >= WAITING_FRACTION


def lasting(report: Report) -> str:
    """Say how fast memory grows, and when it will end; empty where no growth is claimed."""
    sentences = (
        f"{what} grows: {format_bytes(growth.bytes_per_step)} a step. "
        f"It will end at about step {expected:,} ({earliest:,} to {latest:,})."
        for what, growth, (expected, earliest, latest) in _growths(report)
    )
    return " ".join(sentences)


def _growths(report: Report) -> Iterator[tuple[str, Growth, tuple[int, int, int]]]:
    if report.growth is not None and report.ends_at is not None:
        yield "Memory", report.growth, report.ends_at
    if report.host_growth is not None and report.host_ends_at is not None:
        yield "The host's memory", report.host_growth, report.host_ends_at


def _end(report: Report) -> Iterator[str]:
    if report.death is None:
        return
    yield f"Why it ended: {death_headline(report.death)}"
    if report.death.line:
        yield f"  {report.death.line[:200]}"
    yield from (f"- {each}" for each in changes(report.death))


def next_step(report: Report) -> Iterator[str]:
    if report.death is not None or report.batch_size is None:
        return
    if report.fitting_batch_size is not None:
        fits = f"about {report.fitting_batch_size:,} would fit, estimated from this run's own peak"
        yield f"Batch size {report.batch_size:,} was used; {fits}."
    yield f"Prove the largest, and the fastest: {PROGRAM} tune -- python train.py --batch-size {{batch_size}}"


def document(report: Report, status: int) -> dict[str, Any]:
    """Return it as JSON."""
    return {
        "exit_status": status,
        "steps": report.steps,
        "seconds": report.seconds,
        "step_seconds": report.seconds / (report.steps - 1) if report.steps > 1 else None,
        "device": report.device,
        "total_bytes": report.total_bytes,
        "peak_bytes": report.peak_bytes,
        "waiting_fraction": report.waiting_fraction,
        "batch_size": report.batch_size,
        "estimated_fitting_batch_size": report.fitting_batch_size,
        "growth": _growth_document(report.growth, report.ends_at),
        "host_growth": _growth_document(report.host_growth, report.host_ends_at),
        "death": report.death and death_document(report.death),
    }


def _growth_document(growth: Growth | None, ends_at: tuple[int, int, int] | None) -> dict[str, Any] | None:
    if growth is None:
        return None
    return {"bytes_per_step": growth.bytes_per_step, "low": growth.low, "high": growth.high, "ends_at": ends_at}
