"""PURE: the rule of the race: what to time next, and the verdict. It has no state: it reads all rounds so far.

A round runs one block (or start) of each entry that is left, in random order. Only ratios within a round are compared,
so where each runs in a new process, what differs from process to process lies in their spread, and their interval is
reported as it is. Blocks of starts that are held do not show how starts differ: then the interval is wider by
`Field.run_to_run`, less so the more starts there were, and only gains of `LEAST_GAIN_OF_HELD` are excluded.

`speed.ratios` says which rounds count, `speed.evaluation` when an evaluation ends, as of batch sizes.

The race is a successive halving with intervals:

1. *Alone*: today's training and each change alone. A change drops out once its interval lies below a gain of 3 % and
   its figure below 1 %, from four rounds on; after the first two, once it was much slower in all of them. That ends
   when what each remaining change gains is known to 3 %, after three to twelve rounds; where none leads, when each is
   known to gain less than 3 %, or after 24. A change that is slower than the leader stays: it may add to the leader.
2. *Together*: the changes that gain are combined in the order of their gain: the two best, the three best, and so on,
   and the second with the third; what excludes a better one is left out. They race against the best alone. An entry
   drops out once its interval lies below the leader's. If fewer changes are as fast within `AS_FAST`, they lead.
3. *One more*: the leader with each gain that it does not have, and without each change that gained least.
4. *Evaluation*: today's training and the leader, in new rounds only, so that an entry that led by luck has no
   advantage: at least six, until the interval is 3 % to each side, or the time is spent.

That nothing gains is claimed where the upper end of the leader's interval is no gain; or nothing leads, and each entry
that was tried has an interval below a gain of 3 %, or was much slower. On cores that other work uses, its undisturbed
rounds have to show it, or the time for which it had a core. If they do not, or the time was up before, it stays open.
Where that work stays, nothing is combined: a leader that may be ahead by `speed.order` is evaluated until the order is
shown, or cannot be.

The time of the evaluation's fewest rounds is kept for it: the rounds before it end in time, with the leader so far.
Where some starts take longer, as those of a compiled model, each entry has its own time.
`benchmarks/race_rule.py` simulates the rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ..facts.intervals import ENOUGH_ROUNDS, Interval
from ..facts.speed_rounds import SpeedClaim, Stage
from ..facts.stats import NOISE_FRACTION
from .field import NOTHING_TIMED, TODAY, Entry, Field, RacedRound, RaceVerdict
from .speed.claim import CLEARLY_FASTER, claim_of, is_gain
from .speed.evaluation import CLAIMABLE_HALF_WIDTH, Evaluation
from .speed.order import LEAST_GAIN, gain_beside_others
from .speed.ratios import Ratios, Round, interval_of_rounds, is_load_lasting
from .speed.rounds import NextRound

GENERATIONS = 3
FEWEST_ROUNDS, MOST_ROUNDS = 3, 12
"""The rounds of each generation that a change leads."""
ROUNDS_TO_DROP = 4
"""The rounds after which a change that does not gain drops out: fewer do not show that it is not a gain of 3 %."""
MOST_ROUNDS_EVALUATION = 24
"""Also of a generation that nothing leads: no evaluation follows it."""
WORTH_ADDING = math.log(1.01)
"""The logarithm of the least gain alone with which a change is combined with others."""
NOISE = -math.log1p(-NOISE_FRACTION)
AS_FAST = NOISE / 3
"""The logarithm of a ratio below which fewer changes are preferred to a faster combination."""
LEAST_GAIN_OF_HELD = 1.1
"""Below it no gain is excluded by starts that are held: two starts of the same training may differ by as much."""
_SLACK = (math.log(4), math.log(2))
"""The logarithm of the ratio by which an entry must be slower to drop out, after one round and after two."""


def decide(field: Field, rounds: Sequence[RacedRound]) -> NextRound[Entry] | RaceVerdict:
    race = _Race(field, rounds)
    entries: list[Entry] = [TODAY, *((change,) for change in field.changes)]
    leader, gains, tried = TODAY, dict[str, float](), set(entries)
    generations = list[_Generation]()
    for number in range(GENERATIONS):
        generation = race.generation(number, entries)
        generations.append(generation)
        if race.ends_selection(generation):
            is_open = race.order(generation.leader) in (SpeedClaim.AHEAD, None)
            leader = generation.leader if is_open else TODAY
            break
        if not generation.is_settled:
            if race.has_time_for(generation.left, generation.best if generation.rounds else leader):
                return NextRound(Stage.SELECTION, number, tuple(generation.left))
            if number == 0 and len(generation.rounds) < FEWEST_ROUNDS:  # too few for a fair choice
                leader = generation.leader if generation.rounds else TODAY
                return NOTHING_TIMED if leader == TODAY else race.evaluated(leader)
        if generation.rounds and generation.left:  # no entry is left where all of the last round failed later
            leader = generation.leader
            if number == 0:
                gains = generation.gains
        grown = [e for e in _grown(field, leader, gains, number) if e not in tried and e not in race.failed]
        if not grown:
            break
        entries, tried = [leader, *grown], tried | set(grown)
    return race.without_gain(generations) if leader == TODAY else race.evaluated(leader)


def does_load_stay(field: Field, rounds: Sequence[RacedRound]) -> bool:
    return field.shares_cores and is_load_lasting(field.read(rounds))


def ratio_of(entry: Entry, other: Entry, rounds: Sequence[RacedRound], field: Field) -> Interval | None:
    """Return how many times as fast `entry` was as `other`, by all rounds that timed both; None for too few rounds."""
    ratios = Ratios(field.read(rounds))
    found = ratios.of(entry, other)
    if len(found) < 2:
        return None
    return interval_of_rounds(found).widened(ratios.between_starts(entry, other, field.run_to_run)).exp()


def known_ratio(entry: Entry, rounds: Sequence[RacedRound], field: Field) -> tuple[Interval | None, float | None]:
    """Return how many times as fast `entry` was as today's; few or disturbed rounds have a figure but no interval."""
    both = [each for each in field.read(rounds) if {entry, TODAY} <= each.clock.keys()]
    ratio = ratio_of(entry, TODAY, rounds, field)
    if ratio is None:  # a much slower entry drops out after its first round
        return None, math.exp(both[0].clock[entry] - both[0].clock[TODAY]) if both else None
    counted = [each for each in both if not field.shares_cores or not {entry, TODAY} & each.disturbed]
    return (ratio, None) if len(counted) >= ENOUGH_ROUNDS else (None, ratio.value)


def _least_gain(*, are_held: bool) -> float:
    return LEAST_GAIN_OF_HELD if are_held else CLEARLY_FASTER


class _Generation:
    """The rounds of one generation, and the entries left after them."""

    def __init__(
        self, number: int, entries: Sequence[Entry], rounds: Sequence[Round[Entry]], failed: set[Entry], field: Field
    ) -> None:
        self.number, self.rounds, self.ratios = number, rounds, Ratios(rounds)
        self.shares_cores, self.run_to_run = field.shares_cores, field.run_to_run
        last = [e for e in entries if e in rounds[-1].clock] if rounds else entries
        self.left = [entry for entry in last if entry not in failed]
        self.left = [entry for entry in self.left if not self._is_out(entry)]

    @property
    def timed(self) -> set[Entry]:
        return {entry for each in self.rounds for entry in each.clock}

    @property
    def best(self) -> Entry:
        return max(self.left, key=lambda entry: (self.ratios.interval(entry, self.left[0]).value, -len(entry)))

    @property
    def rival(self) -> Entry:
        return TODAY if self.number == 0 else self.best

    def _is_out(self, entry: Entry) -> bool:
        count = len(self.rounds)
        if not count or entry in (TODAY, self.rival):
            return False
        ratio = self.ratios.interval(entry, self.rival)
        if count <= len(_SLACK):
            return ratio.high < -_SLACK[count - 1]
        if self.number == 0:
            return count >= ROUNDS_TO_DROP and ratio.high < NOISE and ratio.value < WORTH_ADDING
        return ratio.high < 0

    @property
    def is_settled(self) -> bool:
        count = len(self.rounds)
        if len(self.left) < 2:
            return True
        if count < FEWEST_ROUNDS:
            return False
        if self.leader == TODAY:
            shown = all(self.excluded_gain(entry) is not None for entry in self.left if entry != TODAY)
            return shown or count >= MOST_ROUNDS_EVALUATION
        rival = self.rival
        ratios = [self.ratios.interval(entry, rival) for entry in self.left if entry != rival]
        fine = all(each.half_width <= NOISE or (self.number == 0 and each.low > NOISE) for each in ratios)
        return fine or count >= MOST_ROUNDS

    def excluded_gain(self, entry: Entry) -> float | None:
        """Return the least gain that the rounds exclude for the entry; None where any gain is possible."""
        if self.ratios.interval(entry, TODAY).high < -_SLACK[-1]:
            return CLEARLY_FASTER
        pair = {entry, TODAY}
        counted = [each for each in self.rounds if not (self.shares_cores and pair & each.disturbed)]
        ratios = Ratios(counted).of(entry, TODAY)
        if len(ratios) >= FEWEST_ROUNDS:
            deviation = self.ratios.between_starts(entry, TODAY, self.run_to_run)
            least = _least_gain(are_held=deviation > 0)
            return least if interval_of_rounds(ratios).widened(deviation).high < math.log(least) else None
        computing = self.ratios.computing(entry, TODAY)
        is_known = self.shares_cores and len(computing) >= FEWEST_ROUNDS
        return LEAST_GAIN if is_known and gain_beside_others(computing).value < math.log(LEAST_GAIN) else None

    @property
    def leader(self) -> Entry:
        """Return the entry with the fewest changes that is as fast as the fastest."""
        best = self.best
        as_fast = [e for e in self.left if e == best or self.ratios.interval(best, e).value <= AS_FAST]
        return min(as_fast, key=lambda entry: (len(entry), self.ratios.interval(best, entry).value))

    @property
    def gains(self) -> dict[str, float]:
        """Return the changes that gain alone, the largest gain first."""
        found = {entry[0]: self.ratios.interval(entry, TODAY).value for entry in self.left if entry != TODAY}
        worth = [(change, gain) for change, gain in found.items() if gain > WORTH_ADDING]
        return dict(sorted(worth, key=lambda item: -item[1]))


class _Race:
    """The rounds of a race, and what they leave to be decided."""

    def __init__(self, field: Field, rounds: Sequence[RacedRound]) -> None:
        self.field = field
        self.failed = {r.failed for r in rounds if r.failed is not None}
        self.rounds = [r for r in rounds if r.failed is None]
        self.selection = [r for r in self.rounds if r.stage is Stage.SELECTION]
        self.is_busy = does_load_stay(field, self.rounds)
        self.spent = sum(r.seconds for r in rounds)
        self.unit_seconds = max((r.seconds / len(r.timed) for r in self.rounds if r.timed), default=0.0)

    def generation(self, number: int, entries: Sequence[Entry]) -> _Generation:
        own = [r for r in self.selection if r.generation == number]
        return _Generation(number, entries, self.field.read(own), self.failed, self.field)

    def ends_selection(self, generation: _Generation) -> bool:
        """Whether other work leaves nothing to choose by: the rounds of the evaluation do not change that."""
        return bool(generation.rounds and generation.left) and does_load_stay(self.field, self.selection)

    def evaluation(self, leader: Entry, stage: Stage = Stage.EVALUATION) -> Evaluation[Entry]:
        read = self.field.read(r for r in self.rounds if r.stage is stage)
        both = [each for each in read if {TODAY, leader} <= each.clock.keys()]
        return Evaluation(both, self.field.shares_cores, self.field.run_to_run)

    def order(self, leader: Entry) -> SpeedClaim | None:
        """Return what the disturbed rounds of a selection show of its leader; None while more of them may show it."""
        return self.evaluation(leader, Stage.SELECTION).order(leader, TODAY)

    def seconds_of(self, *entries: Entry) -> float:
        """Return how long a start of each takes, or a held one's block; a new combination as its longest part."""
        longest: dict[Entry, float] = {}
        timed_units = [timed for r in self.rounds for timed in r.timed if timed.seconds is not None]
        held = {each.entry for each in timed_units if each.was_held}
        for each in timed_units:
            if each.was_held or each.entry not in held:
                longest[each.entry] = max(longest.get(each.entry, 0.0), each.seconds or 0.0)
        parts = {entry: [longest[change,] for change in entry if (change,) in longest] for entry in entries}
        return sum(longest.get(entry, max(parts[entry], default=self.unit_seconds)) for entry in entries)

    def has_time_for(self, entries: Sequence[Entry], leader: Entry) -> bool:
        left = ENOUGH_ROUNDS * self.seconds_of(TODAY, leader)
        return self.spent + self.seconds_of(*entries) + left < self.field.most_seconds

    def without_gain(self, generations: Sequence[_Generation]) -> RaceVerdict:
        """Return the verdict where nothing led: no gain, if the rounds show it of every tried entry, else open."""
        tried = ((each, entry) for each in generations for entry in each.timed - self.failed - {TODAY})
        excluded = [generation.excluded_gain(entry) for generation, entry in tried]
        shown = [gain for gain in excluded if gain is not None]
        if len(shown) == len(excluded):
            least = max([_least_gain(are_held=any(each.was_held for r in self.rounds for each in r.timed)), *shown])
            return RaceVerdict(TODAY, TODAY, SpeedClaim.NO_GAIN, None, 0, 0, least_gain=least)
        quiet = sum(not each.disturbed for each in self.field.read(self.selection))
        is_cut = not self.is_busy and not all(generation.is_settled for generation in generations)
        return RaceVerdict(TODAY, TODAY, SpeedClaim.NOTHING, None, len(self.selection), quiet, ended_early=is_cut)

    def excludes_gain_of_others(self, leader: Entry) -> bool:
        ratios = Ratios(self.field.read(self.selection))
        others = {entry for each in ratios.rounds for entry in each.clock} - {TODAY, leader} - self.failed
        return all(ratios.interval(other, leader).value < math.log(LEAST_GAIN) for other in others)

    def evaluated(self, leader: Entry) -> NextRound[Entry] | RaceVerdict:
        own, pair = self.evaluation(leader), (leader, TODAY)
        count, quiet, found = len(own.rounds), own.quiet_rounds, self._judged(leader, own)
        order = own.order(*pair) if own.is_disturbed else None
        more_starts_may_tell = found.least_gain == LEAST_GAIN_OF_HELD and found.claim is SpeedClaim.NOTHING
        is_late = self.spent + self.seconds_of(TODAY, leader) >= self.field.most_seconds
        if not own.is_over(
            [pair],
            order,
            half_width=None if more_starts_may_tell else NOISE,
            waits=self.field.shares_cores and not self.is_busy,
            is_late=is_late or count >= MOST_ROUNDS_EVALUATION,
        ):
            return NextRound(Stage.EVALUATION, 0, (TODAY, leader))
        if order is SpeedClaim.AHEAD:
            return RaceVerdict(leader, leader, SpeedClaim.AHEAD, None, count, quiet)
        if order is SpeedClaim.NO_GAIN and self.excludes_gain_of_others(leader):
            return RaceVerdict(TODAY, leader, SpeedClaim.NO_GAIN, None, count, quiet, least_gain=LEAST_GAIN)
        is_decided = self.is_busy and order is not None
        if is_decided or found.gain is None:
            return RaceVerdict(TODAY, leader, SpeedClaim.NOTHING, None, count, quiet, ended_early=not is_decided)
        return replace(found, claim=SpeedClaim.NOTHING, chosen=TODAY) if own.is_disturbed else found

    def _judged(self, leader: Entry, own: Evaluation[Entry]) -> RaceVerdict:
        """Return what the rounds would show of a leader if nothing had disturbed them; without a gain: too few."""
        count, quiet = len(own.ratios.of(leader, TODAY)), own.quiet_rounds
        if count < ENOUGH_ROUNDS:
            return RaceVerdict(TODAY, leader, SpeedClaim.NOTHING, None, count, quiet)
        gain, least = own.gain(leader, TODAY), _least_gain(are_held=own.deviation(leader, TODAY) > 0)
        claim = claim_of(gain, is_narrow=own.is_narrow(leader, TODAY, CLAIMABLE_HALF_WIDTH))
        figure = gain.value if claim is SpeedClaim.FIGURE else None
        is_chosen = claim is not SpeedClaim.NOTHING and is_gain(figure, gain.low)
        if not is_chosen:
            claim = SpeedClaim.NO_GAIN if gain.high <= least else SpeedClaim.NOTHING
        chosen = leader if is_chosen else TODAY
        return RaceVerdict(chosen, leader, claim, gain, count, quiet, least_gain=least)


def _grown(field: Field, leader: Entry, gains: dict[str, float], generation: int) -> list[Entry]:
    order = list(gains)
    if generation == 0:
        grown, together = list[Entry | None](), list[str]()
        for change in order:
            if field.entry([*together, change]) is not None:
                together.append(change)
                grown.append(field.entry(together))
        grown += [field.entry(pair) for pair in pairwise(order[:3])]
    else:
        grown = [field.entry([*leader, change]) for change in order if change not in leader]
        weakest = sorted(leader, key=lambda change: gains[change])[:2] if len(leader) > 2 else []
        grown += [field.entry(other for other in leader if other != change) for change in weakest]
    return list(dict.fromkeys(entry for entry in grown if entry is not None))
