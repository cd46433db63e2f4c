"""PURE: the boundaries that the probes of a document allow. There are several where time may have ended earlier.

The search itself is not repeated: whatever sizes it tried, it is over when N trained and N+1 was refused in a fresh
process, or when the maximum trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import SpecError
from ..plan import soak_steps
from ..results.result import Boundary, Outcome, Probe, Purpose, Reason
from ..search.allowed_sizes import AllowedSizes, boundary_among
from ..search.boundary import (
    boundary_of_check,
    boundary_of_search,
    boundary_of_soak,
    boundary_of_soak_cut_short,
    with_current_size_note,
)
from ..search.differing_starts import boundary_where_starts_differ, found_where_starts_differ
from ..search.foreign_memory import bytes_taken_by_others
from ..search.unguided import Found, Trial, next_soak_size
from ..spec import RunSpec
from ..tune.learned_sizes import sizes_taken_and_failed
from ..tune.script_error import wall_of_the_script
from .document import Claims
from .words import are_possible_notes

_SEARCHED = (Purpose.SEARCH, Purpose.CONFIRM)


def possible_boundaries(claims: Claims) -> list[Boundary]:
    """Return the boundaries that the probes allow, the strongest first."""
    if claims.training is not None:
        found = _of_starts(claims)
    elif claims.spec.check_batch_size is not None:
        found = _of_check(claims)
    else:
        found = _of_search(claims)
    return [with_current_size_note(each, claims.spec) for each in found]


def claimed_of(claims: Claims, possible: Sequence[Boundary]) -> Boundary:
    """Return the boundary that is claimed; where none of these is, the one that comes nearest."""
    alike = [each for each in possible if has_claimed_figures(claims.boundary, each)]
    noted = [each for each in alike if are_possible_notes(claims.boundary, each, claims)]
    return next(iter((*noted, *alike, *possible)))


def has_claimed_figures(claimed: Boundary, possible: Boundary) -> bool:
    """Whether the claim is this boundary but for its notes, or the same without a certificate."""
    certified = possible.certified and claimed.certified
    return replace(claimed, note=None) == replace(possible, note=None, certified=certified)


def searched(probes: Sequence[Probe]) -> list[Probe]:
    """Return the probes of the search."""
    return [p for p in probes if p.purpose in _SEARCHED]


def _found(probes: Sequence[Probe], maximum: int, rule: AllowedSizes | None = None) -> Found | None:
    """Return where the search ended, by the rule of `search.unguided`; None where it did not end.

    With the rule of a script the next size is the next that it allows, and what its own errors ended does not count.
    """
    if rule is not None:
        _, failed = sizes_taken_and_failed(probes)
        probes = [p for p in probes if p.batch_size not in failed]
    low = max((p.batch_size for p in probes if p.fits), default=0)
    high = min((p.batch_size for p in probes if not p.fits and p.batch_size > low), default=None)
    following = low + 1 if rule is None else rule.at_least(low + 1)
    if high is None:
        return Found(low, None) if following is None or following > maximum else None
    is_fresh = any(p.fresh_process and not p.fits and p.batch_size == high for p in probes)
    return Found(low, high) if high == following and is_fresh else None


def _out_of_time(probes: Sequence[Probe]) -> Boundary:
    largest = max((p.batch_size for p in probes if p.fits), default=None)
    return Boundary(largest, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)


def _of_search(claims: Claims) -> list[Boundary]:
    assert isinstance(claims.spec, RunSpec)
    probes, device = searched(claims.probes), claims.device
    steps = soak_steps(claims.spec.soak_steps, device.kind)
    found = _found(probes, claims.spec.max_batch_size)
    if found is None:
        return [_out_of_time(probes)]
    boundary = boundary_of_search(found, probes, device)
    all_soaks = [p for p in claims.probes if p.purpose is Purpose.SOAK]
    if not boundary.largest_batch_size:
        return [boundary, _out_of_time(probes)]
    possible = []
    for soaks in _soaks(all_soaks):
        if any(p.batch_size > boundary.largest_batch_size for p in soaks):
            continue  # a soak begins with the largest size, and goes down
        if next_soak_size([Trial(p.batch_size, p.fits) for p in soaks], boundary.largest_batch_size) is None:
            whens = ("", " in an earlier attempt")  # a document does not show which of its probes are carried over
            possible += [boundary_of_soak(boundary, soaks, steps, device, when) for when in whens]
        else:
            possible.append(boundary_of_soak_cut_short(boundary, soaks, steps, probes))
    return possible if all_soaks and possible else [*possible, _out_of_time(probes)]


def _soaks(probes: Sequence[Probe]) -> Iterator[list[Probe]]:
    """Yield the soaks that may have counted: the last one of each size, then the same without a last one that failed.

    A soak is repeated where others held memory, and the last one of its size counts, unless time ended during it.
    """
    counted = list({p.batch_size: p for p in probes}.values())
    yield counted
    if counted and not counted[-1].fits:
        yield counted[:-1]


def _of_check(claims: Claims) -> list[Boundary]:
    assert isinstance(claims.spec, RunSpec)
    out_of_time = Boundary(None, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)
    size = claims.spec.check_batch_size
    probes = [p for p in claims.probes if p.batch_size == size and p.purpose is Purpose.SOAK]
    if not probes:
        return [out_of_time]
    steps = soak_steps(claims.spec.soak_steps, claims.device.kind)
    return [boundary_of_check(probes[-1], steps, claims.probes, claims.device), out_of_time]


def _of_starts(claims: Claims) -> list[Boundary]:
    """Return the boundary of a command: each probe is a start, and running out of data is a limit too."""
    probes, maximum, rule = searched(claims.probes), claims.spec.max_batch_size, _rule_of(claims)
    too_few = [p for p in probes if p.outcome is Outcome.SIZE_LIMIT]
    ended = _found([p for p in probes if p not in too_few], maximum) or _found(probes, maximum)
    possible = [_out_of_time(probes)]
    if rule is not None:
        ended = _found(probes, maximum, rule)
    ended = found_where_starts_differ(probes) or ended
    if ended is not None:
        boundary = boundary_where_starts_differ(boundary_of_search(ended, probes, claims.device), probes)
        possible.insert(0, boundary if rule is None else boundary_among(boundary, rule))
    low = max((p.batch_size for p in probes if p.fits), default=0)
    if (wall := wall_of_the_script(probes, low)) is not None:
        possible.insert(0, boundary_of_search(Found(low, wall), probes, claims.device))
    if too_few and low and min(p.batch_size for p in too_few) > low:
        refusal = too_few[0].error_message
        possible.insert(0, Boundary(low, False, None, Reason.SIZE_LIMIT, refusal=refusal))
    steps = max((p.steps for p in probes if p.fits and p.batch_size == low), default=0)
    return [each if each.reason is Reason.TIME_BUDGET else replace(each, soak_steps=steps) for each in possible]


def _rule_of(claims: Claims) -> AllowedSizes | None:
    """Return the rule that the sizes were searched among: the spec's, or a claimed one that the probes may teach."""
    assert not isinstance(claims.spec, RunSpec)
    if claims.boundary.allowed_sizes is None or claims.spec.sizes is not None:
        return claims.spec.allowed_sizes
    try:
        rule = AllowedSizes.parse(claims.boundary.allowed_sizes)
    except SpecError:
        return None  # then the claim is none of the possible boundaries
    taken, failed = sizes_taken_and_failed(searched(claims.probes))
    return rule if failed and rule.is_consistent(taken, failed) else None


def is_refused_for_memory(probe: Probe, claims: Claims) -> bool:
    """Whether a fresh process ran out of memory that no other process held."""
    is_refused = probe.outcome is Outcome.OUT_OF_MEMORY and probe.fresh_process
    return is_refused and not bytes_taken_by_others(probe, claims.probes, claims.device)
