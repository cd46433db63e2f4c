"""PURE: which size to start next, by memory, by the sizes that the script takes, and by where its data ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..results.result import Outcome, Probe
from ..search.allowed_sizes import AllowedSizes
from ..search.differing_starts import do_starts_differ, next_of_ranks, next_where_starts_differ, proven_on_ranks
from ..search.unguided import Found
from .data_end import DataEnd, size_before_the_data_ends
from .learned_sizes import is_spelled_out, learned_sizes, next_allowed, wider_sizes
from .next_size import Start, next_size
from .script_error import size_of_the_scripts_wall, wall_of_the_script


@dataclass(frozen=True, slots=True)
class SearchSoFar:
    """A search over starts: what each start took, its probe, and what is known of the data and the allowed sizes.

    `starts` are those that say something of memory; `memory_bytes` is 0 before the first has shown the device.
    `measures_refused`: a refused size runs to its end, and its memory will be known. `given` is the user's own rule.
    `is_varied`: batches of one size differ in what they hold, so another start may take other memory. `has_ranks`: so
    may several real ranks, whatever their batches hold.
    """

    starts: Sequence[Start]
    probes: Sequence[Probe]
    memory_bytes: int
    first: int
    maximum: int
    measures_refused: bool = False
    data_end: DataEnd | None = None
    given: AllowedSizes | None = None
    is_varied: bool = False
    has_ranks: bool = False

    @property
    def allowed(self) -> AllowedSizes | None:
        """The rule that the sizes follow: the user's own, or the one that the script's errors teach; None for any."""
        return self.given or learned_sizes(self.probes)

    @property
    def most_trained(self) -> int:
        """The largest size that trained; 0 where none did."""
        return max((s.batch_size for s in self.starts if s.fits), default=0)


def next_start(so_far: SearchSoFar) -> int | Found:
    """Return the size to start next, or where the search has ended."""
    if not so_far.has_ranks:
        return _next_start(so_far)
    if not so_far.is_varied:
        so_far = replace(so_far, starts=worst_of_each(so_far.starts), probes=proven_on_ranks(so_far.probes))
    step = _next_start(so_far)
    if not isinstance(step, Found) or (so_far.is_varied and do_starts_differ(so_far.probes)):
        return step
    return next_of_ranks(step, so_far.probes)


def worst_of_each(starts: Sequence[Start]) -> list[Start]:
    """Return one start of each size: one that was refused, else the one that took the most."""
    worst: dict[int, Start] = {}
    for start in starts:
        known = worst.pop(start.batch_size, start)
        worst[start.batch_size] = min(start, known, key=lambda each: (each.fits, -(each.memory_bytes or 0)))
    return list(worst.values())


def _next_start(so_far: SearchSoFar) -> int | Found:
    if (rule := so_far.allowed) is not None:
        return _among(so_far, rule)
    step = _by_memory(so_far, so_far.starts)
    if isinstance(step, Found):
        probes, memory_bytes = so_far.probes, so_far.memory_bytes
        return next_where_starts_differ(step, probes, memory_bytes) if so_far.is_varied else step
    size = size_of_the_scripts_wall(so_far.probes, so_far.most_trained)
    if size is None and (wall := wall_of_the_script(so_far.probes, so_far.most_trained)) is not None:
        return Found(so_far.most_trained, wall)
    if size is None:
        size = size_before_the_data_ends(step, so_far.data_end, so_far.starts, so_far.probes, so_far.memory_bytes)
    return min(size, so_far.maximum)


def _by_memory(so_far: SearchSoFar, starts: Sequence[Start]) -> int | Found:
    return next_size(
        starts,
        memory_bytes=so_far.memory_bytes,
        first=so_far.first,
        maximum=so_far.maximum,
        measures_refused=so_far.measures_refused,
    )


def _among(so_far: SearchSoFar, rule: AllowedSizes) -> int | Found:
    """Return the next of the sizes that the rule allows: what failed for another reason than memory does not count."""
    failed = {p.batch_size for p in so_far.probes if p.outcome is Outcome.ERROR}
    starts = [s for s in so_far.starts if s.batch_size not in failed]
    step = _by_memory(so_far, starts)
    found = next_allowed(rule, step, starts, so_far.maximum)
    is_sure = so_far.given is not None or is_spelled_out(rule, so_far.probes)
    if isinstance(found, int) or isinstance(step, Found) or is_sure:
        return found
    # the limit is known among the sizes that are sure to train: one between tells whether the script takes more
    wider = wider_sizes(so_far.probes)
    return found if wider is None else next_allowed(wider, step, starts, so_far.maximum)
