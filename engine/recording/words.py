"""PURE: the report of a recorded training in sentences, for the terminal and the portal."""

from __future__ import annotations

from collections.abc import Iterator

from ..deaths.signs import Cause
from ..deaths.words import changes
from ..deaths.words import headline as death_headline
from ..program import PROGRAM
from ..text.units import format_bytes, format_percent
from .ended import status_text
from .growth import Growth
from .recording import Process
from .report import Report

WAITING_FRACTION = 0.1
"""From this share on the wait for data is worth a change."""


def headline(report: Report) -> str:
    """Say what matters most: why it ended, else when its memory will end, else what it used."""
    if report.death is not None:
        return death_headline(report.death)
    for what, growth in _growths(report):
        slope = format_bytes(growth.bytes_per_step)
        return f"{what} grows by {slope} a step, and will end at about step {growth.ends_at[0]:,}."
    if report.unused_bytes is not None and report.total_bytes:
        share = format_percent(report.unused_bytes / report.total_bytes)
        return f"{share} of {format_bytes(report.total_bytes)} never used."
    peak = report.process.peak_bytes
    return f"{format_bytes(peak)} at the peak." if peak else f"{report.process.steps:,} steps."


def lines(report: Report, status: int) -> list[str]:
    """Return the report in lines for a terminal."""
    return [f"MemoryMark {seen(report, status)}", *use(report), *lasting(report), *_end(report), *next_step(report)]


def seen(report: Report, status: int) -> str:
    steps = report.process.steps
    watched = f"watched {steps:,} steps" if steps else "saw no step of an optimizer of torch"
    return f"{watched}; the command ended with {status_text(status)}."


def use(report: Report) -> Iterator[str]:
    process = report.process
    if process.peak_bytes and report.total_bytes:
        unused = report.total_bytes - process.peak_bytes
        share = format_percent(unused / report.total_bytes)
        of = f"{format_bytes(report.total_bytes)} of {report.device}"
        yield f"Peak: {format_bytes(process.peak_bytes)} of {of}; {format_bytes(unused)} ({share}) never used."
    elif process.peak_bytes:
        yield f"Peak: {format_bytes(process.peak_bytes)} of the process on the CPU."
    if report.evaluated_peak:
        own = format_bytes(process.training_peak_bytes or 0)
        yield f"The peak came in an evaluation; training steps had taken {own} at most."
    yield from _shares(report)
    if report.waiting_fraction is not None and process.steps > 1:
        advice = ": more loader workers help more than a larger batch" if _waits(report) else ""
        yield f"Waiting for data: {format_percent(report.waiting_fraction)} of the time{advice}."


def _shares(report: Report) -> Iterator[str]:
    """Say what the training holds all the time, and on a card what its steps take beside it."""
    process = report.process
    if (shares := process.shares) is None or not shares.weights_bytes:
        return
    named = {
        "Weights": shares.weights_bytes,
        "gradients": shares.gradients_bytes,
        "optimizer states": shares.states_bytes,
    }
    said = ", ".join(f"{name} {format_bytes(size)}" for name, size in named.items())
    rest = (process.training_peak_bytes or process.peak_bytes or 0) - sum(named.values())
    others = f"; activations and the rest {format_bytes(rest)}" if report.total_bytes and rest > 0 else ""
    yield f"{said}{others}."


def _waits(report: Report) -> bool:
    return report.waiting_fraction is not None and report.waiting_fraction >= WAITING_FRACTION


def lasting(report: Report) -> list[str]:
    """Say how fast memory grows or grew, when it will end, and what is kept; empty where no growth is claimed."""
    said = []
    for what, growth in _growths(report):
        expected, earliest, latest = growth.ends_at
        slope = f"{format_bytes(growth.bytes_per_step)} a step."
        will_end = f"It will end at about step {expected:,} ({earliest:,} to {latest:,})."
        said.append(f"{what} grew: {slope}" if report.death else f"{what} grows: {slope} {will_end}")
    has_grown = report.death is not None and report.death.cause is Cause.GROWS
    return [*said, _kept(report.process)] if said or has_grown else []


def _kept(process: Process) -> str:
    if (piled := process.piled_up) is None:
        return "Something is kept from step to step, as a loss that is added up without .item() or .detach()."
    shape = "many shapes" if piled.shape is None else " × ".join(map(str, piled.shape)) or "one number"
    left = f"Steps left {piled.count:,} tensors of {shape} behind ({format_bytes(piled.bytes)})"
    graphs = f"and {piled.graphs:,} hold the graph of their step: call .item() or .detach()"
    return f"{left}, {graphs}." if piled.graphs else f"{left}."


def _growths(report: Report) -> Iterator[tuple[str, Growth]]:
    if report.growth is not None:
        yield "Memory", report.growth
    if report.host_growth is not None:
        yield "The host's memory", report.host_growth


def _end(report: Report) -> Iterator[str]:
    if report.death is None:
        return
    yield f"Why it ended: {death_headline(report.death)}"
    if report.death.line:
        yield f"  {report.death.line[:200]}"
    yield from (f"  {each}" for each in long_batch(report))
    yield from (f"- {each}" for each in changes(report.death))


def long_batch(report: Report) -> Iterator[str]:
    """Say which batch was larger than all before it, where the training died of one."""
    if report.death is not None and report.death.cause is Cause.LONG_BATCH:
        batches = report.process.batches
        latest, before = (" × ".join(map(str, each)) for each in (batches.latest, batches.longest_before))
        yield f"It held a tensor of {latest}; the largest before was {before}."


def next_step(report: Report) -> Iterator[str]:
    size = report.process.batch_size
    if report.death is not None or size is None:
        return
    if report.fitting_batch_size is not None:
        fits = f"about {report.fitting_batch_size:,} would fit, estimated from this run's own peak"
        yield f"Batch size {size:,} was used; {fits}."
    yield f"Prove the largest, and the fastest: {PROGRAM} tune -- python train.py --batch-size {{batch_size}}"
