"""PURE: the search where starts of one size take different memory.

Where each is given other rows, two neighbouring sizes prove no limit: either may fit in one start and not in the next.
So the largest size is started again, twice. Where these took other memory, the answer is a size that trained in several
starts, with no certificate.

Several ranks exchange gradients beside the backward pass, so their peaks differ although their rows do not. The limit
is then between a size that trained in each of several starts and the next, which ran out of memory in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..facts.result import Boundary, Outcome, Probe, Purpose, Reason
from ..text.units import format_bytes
from .boundary import with_note
from .stillness import is_more
from .unguided import Found

STARTS_WHERE_THEY_DIFFER = 4
STARTS_WHERE_VARIED = STARTS_OF_RANKS = 3
STEPS_DOWN = 256
"""The first step below a refused size is this part of it, the next twice as much: so few sizes are tried."""


def next_where_starts_differ(found: Found, probes: Sequence[Probe], memory_bytes: int) -> int | Found:
    """Return the size to start again, or a smaller one; where the search ended if all starts of each size agree."""
    starts = _by_size(probes)
    is_memory = any(p.outcome is Outcome.OUT_OF_MEMORY for p in starts.get(found.refused or 0, ()))
    if not is_memory or not found.largest:
        return found
    if not do_starts_differ(probes):
        return found.largest if len(starts[found.largest]) < STARTS_WHERE_VARIED else found
    if (several := found_where_starts_differ(probes)) is not None:
        return several
    refused = _least_refused(starts)
    if refused is None or refused == 1:  # nothing is left
        return found if refused is None else Found(0, 1)
    again = max((size for size, made in starts.items() if len(made) > 1 and size < refused), default=None)
    if again is not None:
        return again
    most_bytes = max(p.peak_allocated_bytes or 0 for p in starts[refused])
    below = refused * memory_bytes // most_bytes if most_bytes > memory_bytes else refused
    fallen = sum(len(made) > 1 and not all(p.fits for p in made) for made in starts.values())
    return max(1, min(below, refused - max(1, (refused << fallen) // STEPS_DOWN)))


def do_starts_differ(probes: Sequence[Probe]) -> bool:
    return any(_differ(made) for made in _by_size(probes).values())


def _differ(made: Sequence[Probe]) -> bool:
    peaks = [p.peak_allocated_bytes for p in made if p.fits and p.peak_allocated_bytes is not None]
    return len({p.fits for p in made}) > 1 or is_more(max(peaks, default=0), min(peaks, default=0))


def found_where_starts_differ(probes: Sequence[Probe]) -> Found | None:
    """Return the largest size that trained in all of several starts, below every refused one; else None."""
    starts = _by_size(probes)
    if not do_starts_differ(probes) or (refused := _least_refused(starts)) is None:
        return None
    proven = [size for size, made in starts.items() if len(made) >= STARTS_WHERE_THEY_DIFFER and size < refused]
    return Found(max(proven), refused) if proven else None


def boundary_where_starts_differ(boundary: Boundary, probes: Sequence[Probe]) -> Boundary:
    """Return the boundary with how many starts prove it; without a certificate where starts of one size differed."""
    made = starts_of(boundary, probes)
    peaks = [p.peak_allocated_bytes for p in made if p.peak_allocated_bytes is not None]
    if do_starts_differ(probes):
        took = f" took {format_bytes(min(peaks))} to {format_bytes(max(peaks))}" if peaks else " trained"
        starts = f"{len(made)} start{'' if len(made) == 1 else 's'} of {boundary.largest_batch_size}"
        note = f"{starts}{took}, each with other rows: no exact limit is known"
        return with_note(replace(boundary, certified=False), note)
    if len(made) == 1 or not peaks:
        return boundary
    return with_note(
        boundary, f"{len(made)} starts of {boundary.largest_batch_size} took {format_bytes(max(peaks))} each"
    )


def starts_of(boundary: Boundary, probes: Sequence[Probe]) -> Sequence[Probe]:
    """Return the starts that trained the largest size, if they were watched for about as long."""
    searched = [p for p in probes if p.purpose in (Purpose.SEARCH, Purpose.CONFIRM)]
    return [p for p in _by_size(searched).get(boundary.largest_batch_size or 0, ()) if p.fits]


def next_of_ranks(found: Found, probes: Sequence[Probe]) -> int | Found:
    """Return the largest size until it had its starts; where the next one did not run out of memory, it needs none."""
    starts = _by_size(probes)
    is_memory = any(p.outcome is Outcome.OUT_OF_MEMORY for p in starts.get(found.refused or 0, []))
    is_open = is_memory and 0 < len(starts.get(found.largest, [])) < STARTS_OF_RANKS
    return found.largest if is_open else found


def proven_on_ranks(probes: Sequence[Probe]) -> list[Probe]:
    """Return the starts without those that trained a size which was refused in another start."""
    refused = {size for size, made in _by_size(probes).items() if not all(p.fits for p in made)}
    return [p for p in probes if not (p.fits and p.batch_size in refused)]


def boundary_on_ranks(boundary: Boundary, probes: Sequence[Probe]) -> Boundary:
    """Return the boundary of several ranks: how many starts prove it, how far they differed; certified by enough."""
    size = boundary.largest_batch_size
    made = [p.memory_bytes for p in _by_size(probes).get(size or 0, []) if p.memory_bytes is not None]
    if not size or not made or boundary.reason is not Reason.OUT_OF_MEMORY:
        return boundary
    least, most = min(made), max(made)
    differed = f"at most, {format_bytes(most - least)} more than the least" if most > least else "each"
    starts = f"{len(made)} start{'' if len(made) == 1 else 's'}"
    note = f"{starts} of {size} took {format_bytes(most)} {differed}"
    return with_note(replace(boundary, certified=boundary.certified and len(made) >= STARTS_OF_RANKS), note)


def without_short_starts(probes: Sequence[Probe]) -> list[Probe]:
    most = {p.batch_size: 0 for p in probes}
    for probe in probes:
        most[probe.batch_size] = max(probe.steps, most[probe.batch_size])
    return [p for p in probes if not p.fits or 2 * p.steps > most[p.batch_size] or p.steps == most[p.batch_size]]


def _by_size(probes: Sequence[Probe]) -> dict[int, list[Probe]]:
    starts: dict[int, list[Probe]] = {}
    for probe in without_short_starts(probes):
        if probe.outcome in (Outcome.FITS, Outcome.OUT_OF_MEMORY):
            starts.setdefault(probe.batch_size, []).append(probe)
    return starts


def _least_refused(starts: dict[int, list[Probe]]) -> int | None:
    return min((size for size, made in starts.items() if not all(p.fits for p in made)), default=None)
