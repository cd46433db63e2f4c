"""PURE: from the probes of a search or a soak to the boundary, and what it may claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..facts.host_memory import is_of_the_host
from ..facts.result import Boundary, DeviceFacts, Outcome, Probe, Reason
from ..settings.spec import MEMORY_STEPS, SearchSpec
from ..text.units import format_bytes
from .foreign_memory import bytes_taken_by_others
from .unguided import Found


def boundary_of_search(found: Found, probes: Sequence[Probe], device: DeviceFacts) -> Boundary:
    """Return the boundary of the search: certified if `found.refused` ran out of memory that no other process held."""
    if found.refused is None:
        return Boundary(found.largest, certified=False, refused_batch_size=None, reason=Reason.MAX_BATCH_SIZE)
    refusal = next(p for p in reversed(probes) if p.batch_size == found.refused and not p.fits)
    return _refused(found.largest, refusal, probes, device)


def boundary_cut_short(probes: Sequence[Probe]) -> Boundary:
    """Return what fitted at the end of the time budget, uncertified, and was not refused in another start."""
    refused = {p.batch_size for p in probes if p.fresh_process and p.outcome is Outcome.OUT_OF_MEMORY}
    largest = max((p.batch_size for p in probes if p.fits and p.batch_size not in refused), default=None)
    return Boundary(largest, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)


def boundary_of_most_starts(probes: Sequence[Probe], device: DeviceFacts) -> Boundary:
    """Return the boundary of a search that made all the starts it may: what trained, with no certificate."""
    largest = boundary_cut_short(probes).largest_batch_size or 0
    refused = min((p.batch_size for p in probes if not p.fits and p.batch_size > largest), default=None)
    boundary = boundary_of_search(Found(largest, refused), probes, device)
    return with_note(replace(boundary, certified=False), f"the search ended after {len(probes)} starts")


def boundary_of_soak(
    boundary: Boundary, soaks: Sequence[Probe], steps: int, device: DeviceFacts, *, had_trained_earlier: bool
) -> Boundary:
    """Return the boundary after its soak, or the largest size that survived.

    `had_trained_earlier`: the size that now failed had trained in an earlier attempt alone.
    """
    largest = boundary.largest_batch_size or 0
    survived = max((p.batch_size for p in soaks if p.fits), default=0)
    if survived == largest:
        return replace(boundary, soak_steps=steps)
    refusal = min((p for p in soaks if not p.fits), key=lambda p: p.batch_size)
    moved = _refused(survived, refusal, soaks, device)
    when = " in an earlier attempt" if had_trained_earlier else ""
    note = f"{largest} trained {MEMORY_STEPS} steps{when}, but not {steps} in a row: the boundary moved down"
    notes = [part for part in (moved.note, note) if part]
    moved = replace(moved, soak_steps=steps if survived else 0, note="; ".join(notes))
    return replace(moved, had_trained_earlier=had_trained_earlier)


def boundary_of_earlier_run(boundary: Boundary) -> Boundary:
    note = "the limit is an earlier run's, on the same device with the same environment: only the speeds are new"
    return with_note(replace(boundary, is_of_earlier_run=True), note)


def boundary_of_check(probe: Probe, steps: int, probes: Sequence[Probe], device: DeviceFacts) -> Boundary:
    """Return what a fixed size's probe proves: at least that size, or nothing of smaller ones; no certificate."""
    if probe.fits:
        return Boundary(
            probe.batch_size, certified=False, refused_batch_size=None, reason=Reason.ONE_SIZE, soak_steps=steps
        )
    refused = _refused(0, probe, probes, device)
    is_evidence = refused.certified
    reason = Reason.ONE_SIZE if is_evidence else refused.reason
    return replace(refused, largest_batch_size=None, certified=False, reason=reason)


def with_note(boundary: Boundary, note: str | None) -> Boundary:
    if note is None or (boundary.note and note in boundary.note):
        return boundary
    return replace(boundary, note=f"{boundary.note}; {note}" if boundary.note else note)


def with_current_size_note(boundary: Boundary, spec: SearchSpec) -> Boundary:
    """Add why today's size has no figures where it is above the maximum: nothing above that is ever run."""
    current, maximum = spec.current_batch_size, spec.max_batch_size
    if current <= maximum or spec.check_batch_size is not None:
        return boundary
    note = f"the current batch size, {current}, was not measured: it is above the maximum of {maximum}"
    return with_note(boundary, note)


def _refused(largest: int, refusal: Probe, probes: Sequence[Probe], device: DeviceFacts) -> Boundary:
    boundary = Boundary(
        largest,
        certified=refusal.outcome is Outcome.OUT_OF_MEMORY,
        refused_batch_size=refusal.batch_size,
        reason=_REASONS[refusal.outcome],
        refusal=refusal.error_message or refusal.error_type,
    )
    if not boundary.certified:
        return boundary
    if taken_bytes := bytes_taken_by_others(refusal, probes, device):
        held = f"others held {format_bytes(taken_bytes)} of the device when batch {refusal.batch_size} was refused"
        return _uncertified(boundary, Reason.FOREIGN_MEMORY, f"{held}; run it again when the device is free")
    if device.kind != "cpu" and is_of_the_host(refusal.error_type, refusal.error_message or ""):
        remedy = "fewer loader workers, or a smaller prefetch_factor, take less"
        return _uncertified(boundary, Reason.ERROR, f"the host's memory ended, not the GPU's: {remedy}")
    note = None
    if device.kind == "cpu" and refusal.error_type != "BudgetExceeded":
        note = "the host itself ran out of memory before the limit was reached"
    elif device.is_shared and device.foreign_used_bytes:  # too little to affect the certificate
        note = f"others held {format_bytes(device.foreign_used_bytes)} of the device when the run began"
    return replace(boundary, reason=boundary.reason if largest else Reason.DOES_NOT_FIT, note=note)


def _uncertified(boundary: Boundary, reason: Reason, note: str) -> Boundary:
    """Return the boundary whose refusal says nothing of the training: not even that size 1 does not fit."""
    largest = boundary.largest_batch_size or None
    return replace(boundary, largest_batch_size=largest, certified=False, reason=reason, note=note)


_REASONS = {
    Outcome.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    Outcome.SIZE_LIMIT: Reason.SIZE_LIMIT,
    Outcome.ERROR: Reason.ERROR,
}


def boundary_of_soak_cut_short(
    boundary: Boundary, soaks: Sequence[Probe], steps: int, searched: Sequence[Probe]
) -> Boundary:
    """Return the boundary where the time budget ended during the soak: the largest fit not refuted by a soak."""
    failed = min((p.batch_size for p in soaks if not p.fits), default=None)
    largest = boundary.largest_batch_size
    note = f"the time budget ended before {largest} had trained {steps} steps in a row"
    if failed is not None:
        largest = max((p.batch_size for p in searched if p.fits and p.batch_size < failed), default=0)
        note = f"{failed} failed its soak of {steps} steps, and the time budget ended before a size survived one"
    return replace(boundary, largest_batch_size=largest, certified=False, reason=Reason.TIME_BUDGET, note=note)
