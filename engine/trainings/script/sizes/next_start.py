"""PURE: which size to start next, by memory, the sizes that the script takes and its data's end; and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....facts.result import Outcome, Probe
from ....search.allowed_sizes import AllowedSizes
from ....search.differing_starts import (
    do_starts_differ,
    next_of_ranks,
    next_where_starts_differ,
    proven_on_ranks,
)
from ....search.stillness import Watched, steps_to_watch
from ....search.unguided import Found
from .learned_sizes import (
    failed_by_rule,
    is_spelled_out,
    learned_sizes,
    next_allowed,
    size_of_the_scripts_wall,
    wall_of_the_script,
    wider_sizes,
)
from .next_size import Start, is_within_reach, next_size

STEPS = 5
MOST_STARTS = 40
"""Whatever a script does, a search has then ended."""
LEAST_SECONDS, PATIENCE = 120.0, 20
"""A later start may take 20 times as long as the longest before; one that the data should not feed less."""
LEAST_SECONDS_WITHOUT_DATA, PATIENCE_WITHOUT_DATA = 10.0, 4
STEPS_OF_A_PROBE = 3  # the fewest optimizer steps that are a probe; a script may make all of them in one pass


@dataclass(frozen=True, slots=True)
class DataEnd:
    """The rows of one pass over the training's data in one process, and the micro-batches of an optimizer step."""

    rows: int
    micro_batches: int

    @property
    def largest(self) -> int:
        return self.rows // self.micro_batches

    @property
    def walls(self) -> tuple[int, ...]:
        """The largest sizes with which one pass makes 1, 2 and 3 optimizer steps, the largest size first.

        A script that makes three passes or more trains with the first, one that makes a single pass with the last.
        """
        sizes = dict.fromkeys(self.rows // (self.micro_batches * steps) for steps in range(1, STEPS_OF_A_PROBE + 1))
        return tuple(size for size in sizes if size)

    def describe(self, size: int) -> str:
        """Say why the data cannot feed `size`: 4,096 rows allow batches of up to 2,048."""
        wall = max((wall for wall in self.walls if wall < size), default=None)
        per_step = f", {self.micro_batches} micro-batches a step" if self.micro_batches > 1 else ""
        allowed = f"do not feed {size:,}" if wall is None else f"allow batches of up to {wall:,}"
        return f"the data's {self.rows:,} rows {allowed}{per_step}"


@dataclass(frozen=True, slots=True)
class SearchSoFar:
    """A search over starts: what each start took, its probe, and what is known of the data and the allowed sizes.

    `starts` are those that say something of memory; `memory_bytes` is 0 before the first has shown the device.
    `measures_refused`: a refused size runs to its end, and its memory will be known. `given` is the user's own rule.
    `has_ranks`: several real ranks train. `watched` is what the steps of each size showed in their order, `least_steps`
    how many each has.
    """

    starts: Sequence[Start]
    probes: Sequence[Probe]
    memory_bytes: int
    first: int
    maximum: int
    measures_refused: bool = False
    data_end: DataEnd | None = None
    given: AllowedSizes | None = None
    has_ranks: bool = False
    watched: Sequence[Watched] = ()
    least_steps: int = STEPS

    @property
    def allowed(self) -> AllowedSizes | None:
        """The rule that the sizes follow: the user's own, and what the script's errors teach; None for any."""
        return learned_sizes(self.probes, self.given)

    @property
    def is_varied(self) -> bool:
        """Whether the steps differed, so that another start of the same size may take other memory."""
        return any(each.is_varied or each.is_rising for each in self.watched)

    def steps(self, batch_size: int) -> int:
        return steps_to_watch(self.least_steps, batch_size, self.watched, has_ranks=self.has_ranks)

    @property
    def wants_more_steps(self) -> set[int]:
        """The sizes that made too few steps in their one start, before it was seen that the training is not still."""
        is_still = [not (w.is_varied or w.is_rising or w.rose_at > self.least_steps) for w in self.watched]
        until_it_was_not = self.watched[: is_still.index(False) + 1] if not all(is_still) else ()
        few = [each.batch_size for each in until_it_was_not if 2 * each.steps <= self.steps(each.batch_size)]
        started = Counter(p.batch_size for p in self.probes)
        return {size for size in few if started[size] == 1}

    @property
    def most_trained(self) -> int:
        return max((s.batch_size for s in self.starts if s.fits), default=0)


def next_start(so_far: SearchSoFar) -> int | Found:
    if len(so_far.probes) >= MOST_STARTS:
        return Found(so_far.most_trained, None)
    if not so_far.has_ranks:
        return _next_start(so_far)
    if not so_far.is_varied:
        so_far = replace(so_far, starts=worst_of_each(so_far.starts), probes=proven_on_ranks(so_far.probes))
    step = _next_start(so_far)
    if not isinstance(step, Found) or (so_far.is_varied and do_starts_differ(so_far.probes)):
        return step
    return next_of_ranks(step, so_far.probes)


def worst_of_each(starts: Sequence[Start]) -> list[Start]:
    worst: dict[int, Start] = {}
    for start in starts:
        known = worst.pop(start.batch_size, start)
        worst[start.batch_size] = min(start, known, key=lambda each: (each.fits, -(each.memory_bytes or 0)))
    return list(worst.values())


def _next_start(so_far: SearchSoFar) -> int | Found:
    is_closing_in = any(not s.fits and s.batch_size > so_far.most_trained for s in so_far.starts)
    if is_closing_in and so_far.most_trained in so_far.wants_more_steps:
        return so_far.most_trained
    rule = so_far.allowed
    step = _freely(so_far) if rule is None else _among(so_far, rule)
    if not isinstance(step, Found) or not so_far.is_varied:
        return step
    step = next_where_starts_differ(step, so_far.probes, so_far.memory_bytes)
    if isinstance(step, Found):
        return step
    failed = {p.batch_size for p in so_far.probes if p.outcome is Outcome.ERROR}
    sizes = (size if rule is None else rule.at_most(size) for size in range(step, 0, -1))
    another = next((size for size in sizes if size not in failed), 0)
    return another or Found(0, min(p.batch_size for p in so_far.probes if not p.fits))


def _freely(so_far: SearchSoFar) -> int | Found:
    step = _by_memory(so_far, so_far.starts)
    if isinstance(step, Found):
        return step
    if (size := size_of_the_scripts_wall(so_far.probes, so_far.most_trained)) is not None:
        return min(size, so_far.maximum)
    if (wall := wall_of_the_script(so_far.probes, so_far.most_trained)) is not None:
        return Found(so_far.most_trained, wall)
    return min(_before_the_data_ends(so_far, step), so_far.maximum)


def _before_the_data_ends(so_far: SearchSoFar, size: int) -> int:
    """Return `size`, or where the data should end first: the largest size that it can feed, and then the one above."""
    too_large = {p.batch_size for p in so_far.probes if p.outcome is Outcome.SIZE_LIMIT}
    walls = so_far.data_end.walls if so_far.data_end else ()
    wall = next((each for each in walls if each >= so_far.most_trained and each not in too_large), None)
    if wall is None:
        return size
    if wall == so_far.most_trained:
        return wall + 1
    for_memory = [s for s in so_far.starts if s.batch_size not in too_large]
    return wall if size > wall or is_within_reach(wall, for_memory, so_far.memory_bytes) else size


def _by_memory(so_far: SearchSoFar, starts: Sequence[Start]) -> int | Found:
    if so_far.is_varied and not any(s.fits for s in starts[-2:]):
        low = max((s.batch_size for s in starts if s.fits), default=0)
        high = min((s.batch_size for s in starts if not s.fits and s.batch_size > low), default=0)
        if high - low > 2:
            return (low + high) // 2  # lines through what is not still lead down step by step
    return next_size(
        starts,
        memory_bytes=so_far.memory_bytes,
        first=so_far.first,
        maximum=so_far.maximum,
        measures_refused=so_far.measures_refused,
    )


def _among(so_far: SearchSoFar, rule: AllowedSizes) -> int | Found:
    """Return the next size that the rule allows. Sizes that failed only because the rule forbids them do not count."""
    starts = [s for s in so_far.starts if s.batch_size not in failed_by_rule(rule, so_far.probes)]
    step = _by_memory(so_far, starts)
    found = next_allowed(rule, step, starts, so_far.maximum)
    is_sure = rule == so_far.given or is_spelled_out(rule, so_far.probes)
    if isinstance(found, int) or isinstance(step, Found) or is_sure:
        return found
    # the limit is known among the sizes that are sure to train: one between tells whether the script takes more
    wider = wider_sizes(so_far.probes)
    return found if wider is None else next_allowed(wider, step, starts, so_far.maximum)


def seconds_of_a_start(earlier: Sequence[float], seconds_left: float, *, is_fed: bool = True) -> float:
    """Return how long a start may take, by the seconds of `earlier` ones; `is_fed`: the data should feed its size."""
    if not earlier:
        return seconds_left
    patience = max(LEAST_SECONDS, PATIENCE * max(earlier))
    if not is_fed:
        patience = LEAST_SECONDS_WITHOUT_DATA + PATIENCE_WITHOUT_DATA * max(earlier)
    return min(patience, seconds_left)
