"""PURE: the report of a recorded training: what it used, what lay idle, whether it lasts, and why it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..deaths.cause import Death, explain
from ..deaths.signs import Cause
from ..deaths.words import changes, headline
from ..deaths.words import document as death_document
from ..program import PROGRAM
from ..text.units import format_bytes, format_percent
from .growth import Growth, growth_of
from .record import Recording

INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT)
"""How a command ends that its own user stopped: there is nothing to explain."""
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
    death: Death | None = None


def report_of(recording: Recording, free_bytes: int) -> Report:
    """Work the report out; `free_bytes` are those that the host has left, where the training ran on its CPU."""
    noted = recording.fullest
    if noted is None:
        return Report(death=_death(recording, None))
    samples, peak, total = noted["samples"], noted["peak_bytes"], noted["total_bytes"]
    growth = growth_of(samples, peak)
    limit = total or (peak + free_bytes)
    return Report(
        steps=noted["steps"],
        seconds=noted["seconds"],
        device=noted["device"],
        total_bytes=total,
        peak_bytes=peak,
        waiting_fraction=min(1.0, noted["loading_seconds"] / noted["seconds"]) if noted["seconds"] else None,
        batch_size=noted["batch_size"],
        fitting_batch_size=_fitting(noted),
        growth=growth,
        ends_at=growth.ends_at(limit) if growth else None,
        death=_death(recording, noted),
    )


def _fitting(noted: Mapping[str, Any]) -> int | None:
    """Return the batch size that the card may take, as the peak beyond what a step leaves grows with the batch."""
    total, peak, size, samples = noted["total_bytes"], noted["peak_bytes"], noted["batch_size"], noted["samples"]
    if not (total and peak and size and samples) or noted["error"] is not None:
        return None
    held = min(each[2] for each in samples[1:] or samples)
    each_bytes = (peak - held) / size
    return int((ROOM * total - held) / each_bytes) if each_bytes > 0 else None


def _death(recording: Recording, noted: Mapping[str, Any] | None) -> Death | None:
    if recording.status in (0, *INTERRUPTED):
        return None
    error = noted["error"] if noted else None
    if error is not None:
        return explain(error["text"])
    if recording.status == -signal.SIGKILL and recording.oom_kills > 0:
        return Death(Cause.HOST_MEMORY, line="the kernel's out-of-memory killer ended a process meanwhile")
    if noted is not None and noted["refused_allocations"]:
        return Death(Cause.CANNOT_TELL, line="the card refused memory, and the script ended by itself after it")
    return Death(Cause.CANNOT_TELL, line=f"it ended with {_status_text(recording.status)}")


def _status_text(status: int) -> str:
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def lines(report: Report, status: int) -> list[str]:
    """Return the report in lines for a terminal."""
    watched = f"watched {report.steps:,} steps" if report.steps else "saw no step of an optimizer of torch"
    said = [f"MemoryMark {watched}; the command ended with {_status_text(status)}."]
    return [*said, *_use(report), *_lasting(report), *_end(report), *_next(report)]


def _use(report: Report) -> Iterator[str]:
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


def _lasting(report: Report) -> Iterator[str]:
    if report.growth is None or report.ends_at is None:
        return
    expected, earliest, latest = report.ends_at
    slope = format_bytes(report.growth.bytes_per_step)
    yield (
        f"It grows: {slope} a step. Memory will end at about step {expected:,} ({earliest:,} to {latest:,}). "
        "Something is kept from step to step, as a loss that is added up without .item() or .detach()."
    )


def _end(report: Report) -> Iterator[str]:
    if report.death is None:
        return
    yield f"Why it ended: {headline(report.death)}"
    if report.death.line:
        yield f"  {report.death.line[:200]}"
    yield from (f"- {each}" for each in changes(report.death))


def _next(report: Report) -> Iterator[str]:
    if report.death is not None or report.batch_size is None:
        return
    if report.fitting_batch_size is not None:
        fits = f"about {report.fitting_batch_size:,} would fit, estimated from this run's own peak"
        yield f"Batch size {report.batch_size:,} was used; {fits}."
    yield f"Prove the largest, and the fastest: {PROGRAM} tune -- python train.py --batch-size {{batch_size}}"


def document(report: Report, status: int) -> dict[str, Any]:
    """Return it as JSON."""
    growth = report.growth
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
        "growth": growth
        and {
            "bytes_per_step": growth.bytes_per_step,
            "low": growth.low,
            "high": growth.high,
            "ends_at": report.ends_at,
        },
        "death": report.death and death_document(report.death),
    }
