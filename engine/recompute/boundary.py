"""PURE: the boundaries that the probes of a document allow. There are several where time may have ended earlier.

The search itself is not repeated: whatever sizes it tried, it is over when N trained and N+1 was refused in a fresh
process, or when the maximum trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..results.result import Boundary, Outcome, Probe, Purpose
from ..search.allowed_sizes import AllowedSizes
from ..search.boundary import with_current_size_note
from ..search.foreign_memory import bytes_taken_by_others
from ..search.unguided import Found
from ..tune.learned_sizes import failed_by_rule
from .claims import Claims

MOST_NOTES = 32
_SEARCHED = (Purpose.SEARCH, Purpose.CONFIRM)


def possible_boundaries(claims: Claims) -> list[Boundary]:
    """Return the boundaries that the probes allow, the strongest first."""
    return [with_current_size_note(each, claims.spec) for each in claims.boundaries()]


def claimed_of(claims: Claims, possible: Sequence[Boundary]) -> Boundary:
    """Return the boundary that is claimed; where none of these is, the one that comes nearest."""
    alike = [each for each in possible if has_claimed_figures(claims.boundary, each)]
    noted = [each for each in alike if are_possible_notes(claims.boundary, each, claims)]
    return next(iter((*noted, *alike, *possible)))


def has_claimed_figures(claimed: Boundary, possible: Boundary) -> bool:
    """Whether the claim is this boundary but for its notes, or the same without a certificate."""
    certified = possible.certified and claimed.certified
    return replace(claimed, note=None) == replace(possible, note=None, certified=certified)


def are_possible_notes(claimed: Boundary, possible: Boundary, claims: Claims) -> bool:
    """Whether a note holds all that the probes show, and beyond it only what a run may say of itself."""
    given = claimed.note.split("; ") if claimed.note else []
    shown = possible.note.split("; ") if possible.note else []
    more = [each for each in given if each not in shown]
    is_whole = {*shown} <= {*given} and len(given) == len({*given}) <= MOST_NOTES
    return is_whole and claims.may_note(more, claimed)


def searched(probes: Sequence[Probe]) -> list[Probe]:
    return [p for p in probes if p.purpose in _SEARCHED]


def ended_at(probes: Sequence[Probe], maximum: int, rule: AllowedSizes | None = None) -> Found | None:
    """Return where the search ended, by the rule of `search.unguided`; None where it did not end.

    With the rule of a script the next size is the next that it allows, and what its own errors ended does not count.
    """
    if rule is not None:
        failed = failed_by_rule(rule, probes)
        probes = [p for p in probes if p.batch_size not in failed]
    low = max((p.batch_size for p in probes if p.fits), default=0)
    high = min((p.batch_size for p in probes if not p.fits and p.batch_size > low), default=None)
    following = low + 1 if rule is None else rule.at_least(low + 1)
    if high is None:
        return Found(low, None) if following is None or following > maximum else None
    is_fresh = any(p.fresh_process and not p.fits and p.batch_size == high for p in probes)
    return Found(low, high) if high == following and is_fresh else None


def is_refused_for_memory(probe: Probe, claims: Claims) -> bool:
    """Whether a fresh process ran out of memory that no other process held."""
    is_refused = probe.outcome is Outcome.OUT_OF_MEMORY and probe.fresh_process
    return is_refused and not bytes_taken_by_others(probe, claims.probes, claims.device)
