"""The race: what is timed next, what drops out, what is combined, and what may be claimed."""

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from engine.facts.intervals import ENOUGH_ROUNDS
from engine.facts.speed_rounds import SpeedClaim, Stage
from engine.race.field import TODAY, Entry, Field, RacedRound, RaceVerdict, Timed
from engine.race.rule import FEWEST_ROUNDS, MOST_ROUNDS, decide, ratio_of
from engine.race.speed.order import CLEAR_ROUNDS
from engine.race.speed.rounds import NextRound
from engine.race.text import nothing_found

FACTORS = {"fused": 1.2, "bf16": 1.6, "tf32": 1.4, "channels_last": 0.5, "released": 1.0}
CONFLICT = frozenset({frozenset({"bf16", "tf32"})})


def raced(
    field: Field,
    factors: Mapping[str, float] = FACTORS,
    *,
    fails: Entry | None = None,
    others_cores: float = 0.0,
    seconds: float = 1.0,
    noise: float = 0.004,
    held: bool = False,
    computing: float | None = None,
) -> tuple[RaceVerdict, list[RacedRound]]:
    """Race changes of these true factors, every block with a little noise."""
    rng, rounds = random.Random(1), list[RacedRound]()
    while isinstance(step := decide(field, rounds), NextRound):
        assert len(rounds) < 200
        failed = fails if fails in step.entries else None
        before = sum(r.stage is step.stage for r in rounds)
        timed = tuple(
            Timed(
                entry,
                10 * math.prod(factors[c] for c in entry) * math.exp(rng.gauss(0, noise)),
                others_cores,
                was_held=held and bool(before % ENOUGH_ROUNDS),
                computing_fraction=computing,
            )
            for entry in step.entries
            if entry != failed
        )
        rounds.append(RacedRound(step.stage, step.generation, timed, seconds * len(timed), failed))
    return step, rounds


def entries_of(rounds: list[RacedRound]) -> set[Entry]:
    return {timed.entry for r in rounds for timed in r.timed}


def test_changes_that_gain_are_combined_and_their_gain_is_claimed() -> None:
    verdict, _ = raced(Field(tuple(FACTORS), CONFLICT))
    assert verdict.chosen == ("fused", "bf16")
    assert verdict.claim is SpeedClaim.FIGURE
    assert verdict.gain is not None
    assert verdict.gain.low <= 1.2 * 1.6 <= verdict.gain.high


def test_a_change_whose_starts_are_long_takes_no_time_from_the_evaluation_of_another() -> None:
    """As `torch.compile` of many small layers: once it is out, the others need none of its time."""
    takes = {("compile",): 60.0}
    timed = {TODAY: 10.0, ("fused",): 30.0, ("compile",): 4.0}
    rounds = list[RacedRound]()
    while isinstance(step := decide(Field(("fused", "compile"), most_seconds=420.0), rounds), NextRound):
        made = tuple(Timed(e, timed[e] * (1 + 0.001 * len(rounds)), None, takes.get(e, 10.0)) for e in step.entries)
        rounds.append(RacedRound(step.stage, step.generation, made, sum(each.seconds or 0.0 for each in made)))
    assert (step.chosen, step.claim) == (("fused",), SpeedClaim.FIGURE)
    assert sum(r.seconds for r in rounds) <= 420.0


def test_what_leads_where_the_time_allows_one_round_is_evaluated_but_that_nothing_gains_stays_open() -> None:
    short = Field(("fused", "bf16"), CONFLICT, most_seconds=17.0)  # a round of three, and six of two
    verdict, rounds = raced(short)
    assert [r.stage for r in rounds] == [Stage.SELECTION] + [Stage.EVALUATION] * 6
    assert (verdict.chosen, verdict.claim) == (("bf16",), SpeedClaim.FIGURE)
    verdict, _ = raced(short, {"fused": 0.9, "bf16": 0.8})
    assert (verdict.claim, verdict.ended_early) == (SpeedClaim.NOTHING, True)


def test_changes_that_exclude_each_other_are_never_timed_together() -> None:
    _, rounds = raced(Field(tuple(FACTORS), CONFLICT))
    assert not any({"bf16", "tf32"} <= set(entry) for entry in entries_of(rounds))


def test_a_change_that_is_much_slower_is_timed_no_more_than_twice() -> None:
    _, rounds = raced(Field(tuple(FACTORS), CONFLICT), {**FACTORS, "channels_last": 0.4})
    assert sum(("channels_last",) in {each.entry for each in r.timed} for r in rounds) <= 2


def test_where_nothing_gains_todays_training_is_chosen_without_an_evaluation() -> None:
    verdict, rounds = raced(Field(("fused", "released")), {"fused": 1.0, "released": 0.97})
    assert (verdict.chosen, verdict.claim, verdict.is_found) == (TODAY, SpeedClaim.NO_GAIN, False)
    assert {r.stage for r in rounds} == {Stage.SELECTION}
    assert len(rounds) <= MOST_ROUNDS


@pytest.mark.parametrize(
    ("field", "factor", "made", "ended_early"),
    [
        (Field(("fused",), most_seconds=20.0), 0.99, {"noise": 0.05}, True),  # time for three rounds
        (Field(("fused",)), 0.96, {"noise": 0.2}, False),
        (Field(("fused",), cores=2, shares_cores=True), 0.99, {"others_cores": 1.0}, False),
    ],
    ids=["cut", "wide", "disturbed"],
)
def test_that_nothing_gains_stays_open_where_the_rounds_do_not_show_it(
    field: Field, factor: float, made: dict[str, float], ended_early: bool
) -> None:
    verdict, rounds = raced(field, {"fused": factor}, **made)
    assert {r.stage for r in rounds} == {Stage.SELECTION}
    assert (verdict.claim, verdict.ended_early) == (SpeedClaim.NOTHING, ended_early)
    assert (verdict.leader, verdict.rounds) == (TODAY, len(rounds))
    assert nothing_found([verdict]).startswith("Nothing is claimed: ")


def test_a_change_that_may_gain_is_timed_until_it_is_known_that_it_does_not() -> None:
    """Three rounds tell its gain to 3 % to each side, but not yet that it is less than 3 %."""
    gains = itertools.chain((0.985, 1.035, 0.98), itertools.cycle((0.99, 1.0)))
    rounds = list[RacedRound]()
    while isinstance(step := decide(Field(("fused",)), rounds), NextRound):
        timed = (Timed(TODAY, 10.0), Timed(("fused",), 10 * next(gains)))
        rounds.append(RacedRound(step.stage, step.generation, timed, 1.0))
    assert (step.leader, step.claim) == (TODAY, SpeedClaim.NO_GAIN)
    assert len(rounds) > 3


def test_a_leader_that_may_still_gain_is_no_proof_that_nothing_does() -> None:
    """It led by luck; its evaluation knows it to 3 % to each side: 1.01, up to 1.04."""
    speeds = {Stage.SELECTION: itertools.cycle((1.05, 1.04)), Stage.EVALUATION: itertools.cycle((1.04, 0.98))}
    rounds = list[RacedRound]()
    while isinstance(step := decide(Field(("fused",)), rounds), NextRound):
        timed = (Timed(TODAY, 10.0), Timed(("fused",), 10 * next(speeds[step.stage])))
        rounds.append(RacedRound(step.stage, step.generation, timed, 1.0))
    assert (step.leader, step.chosen, step.claim) == (("fused",), TODAY, SpeedClaim.NOTHING)


def test_fewer_changes_are_preferred_where_one_more_adds_nothing() -> None:
    verdict, _ = raced(Field(("fused", "released")), {"fused": 1.5, "released": 1.004})
    assert verdict.chosen == ("fused",)


@pytest.mark.parametrize("failing", [("bf16",), ("fused", "bf16")])
def test_an_entry_that_fails_ends_nothing_and_does_not_come_back(failing: Entry) -> None:
    verdict, rounds = raced(Field(tuple(FACTORS), CONFLICT), fails=failing)
    assert failing not in entries_of(rounds)
    assert verdict.is_found
    assert sum(r.failed == failing for r in rounds) == 1


def test_the_time_of_the_evaluation_is_kept_for_it() -> None:
    verdict, rounds = raced(Field(tuple(FACTORS), CONFLICT, most_seconds=40))
    assert verdict.is_found
    assert sum(r.seconds for r in rounds) <= 40


def test_without_time_for_an_evaluation_nothing_is_claimed() -> None:
    verdict, rounds = raced(Field(tuple(FACTORS), CONFLICT, most_seconds=10))
    assert verdict.ended_early
    assert (verdict.chosen, verdict.claim) == (TODAY, SpeedClaim.NOTHING)
    assert sum(r.seconds for r in rounds) <= 12


def test_beside_other_work_on_the_same_cores_no_factor_is_claimed_and_the_race_ends_early() -> None:
    busy = Field(tuple(FACTORS), CONFLICT, cores=2, shares_cores=True)
    verdict, rounds = raced(busy, others_cores=1.0)
    assert (verdict.claim, verdict.chosen, verdict.ended_early) == (SpeedClaim.NOTHING, TODAY, False)
    assert len(rounds) == FEWEST_ROUNDS, "1.6x is no order"
    assert nothing_found([verdict]).startswith("Nothing is claimed: other programs ran in all 3 rounds")
    ahead, rounds = raced(busy, {**FACTORS, "released": 12.0}, others_cores=1.0)
    assert (ahead.claim, ahead.chosen, ahead.gain) == (SpeedClaim.AHEAD, ("released",), None)
    assert len(rounds) == FEWEST_ROUNDS + CLEAR_ROUNDS


def test_beside_other_work_the_time_with_a_core_shows_which_change_is_faster_or_that_none_gains_half() -> None:
    busy = Field(tuple(FACTORS), CONFLICT, cores=2, shares_cores=True)
    ahead, rounds = raced(busy, others_cores=1.0, noise=0.05, computing=0.5)
    assert (ahead.claim, ahead.chosen, ahead.gain) == (SpeedClaim.AHEAD, ("bf16",), None)
    assert len(rounds) == FEWEST_ROUNDS + ENOUGH_ROUNDS
    for factors in ({"fused": 1.2, "released": 1.0}, {"fused": 0.9, "released": 0.8}):
        none, _ = raced(replace(busy, changes=tuple(factors)), factors, others_cores=1.0, noise=0.05, computing=0.5)
        assert (none.claim, none.chosen) == (SpeedClaim.NO_GAIN, TODAY)
        assert nothing_found([none]) == "No change that was tried makes this training faster by 50 % or more."


def test_starts_that_are_held_claim_less_as_they_do_not_show_how_starts_differ() -> None:
    fused = Field(("fused",))
    (anew, _), (held, rounds) = (raced(fused, held=each) for each in (False, True))
    assert anew.gain is not None
    assert held.gain is not None
    assert anew.gain.spread < 1.03 < held.gain.spread
    assert held.chosen == ("fused",)
    assert sum(r.stage is Stage.EVALUATION for r in rounds) == ENOUGH_ROUNDS
    none, _ = raced(fused, {"fused": 1.03}, held=True)
    assert none.claim is SpeedClaim.NO_GAIN
    assert nothing_found([none]) == "No change that was tried makes this training faster by 10 % or more."
    little, rounds = raced(fused, {"fused": 1.06}, held=True)
    assert (little.claim, little.chosen) == (SpeedClaim.FIGURE, ("fused",))
    assert sum(r.stage is Stage.EVALUATION for r in rounds) > ENOUGH_ROUNDS, "more starts tell more"


def test_blocks_that_a_burst_slowed_down_do_not_move_a_ratio() -> None:
    speeds = [(10.0, 12.0), (10.1, 12.1), (5.0, 12.0), (10.0, 6.0), (10.0, 12.2)]
    rounds = [
        RacedRound(Stage.SELECTION, 0, (Timed(TODAY, today), Timed(("fused",), fused)), 1.0) for today, fused in speeds
    ]
    ratio = ratio_of(("fused",), TODAY, rounds, Field(("fused",)))
    assert ratio is not None
    assert 1.19 < ratio.low < ratio.high < 1.23


def test_every_timed_entry_is_in_the_order_of_the_field() -> None:
    changes = ("a", "b", "c")
    _, rounds = raced(Field(changes), dict.fromkeys(changes, 1.3))
    assert entries_of(rounds) <= {e for n in range(4) for e in itertools.combinations(changes, n)}


def test_time_for_fewer_than_three_rounds_is_no_proof_that_nothing_gains() -> None:
    verdict, rounds = raced(Field(("fused",), most_seconds=15.0), {"fused": 0.9})
    assert len(rounds) < 3
    assert (verdict.claim, verdict.ended_early) == (SpeedClaim.NOTHING, True)


def test_where_every_change_failed_there_is_no_gain_however_few_the_rounds() -> None:
    verdict, _ = raced(Field(("fused",)), fails=("fused",))
    assert (verdict.claim, verdict.ended_early) == (SpeedClaim.NO_GAIN, False)


def _race_with_failures(seed: int) -> RaceVerdict:
    """Race entries of which any may fail at any time."""
    rng = random.Random(seed)
    field = Field(tuple("abcde"[: rng.randint(2, 5)]), cores=2)
    speeds = {name: rng.choice((0.9, 1.0, 1.1, 1.3)) for name in field.changes}
    rounds: list[RacedRound] = []
    while isinstance(step := decide(field, rounds), NextRound):
        changed = [entry for entry in step.entries if entry]
        if rng.random() < 0.05 * len(changed):
            rounds.append(RacedRound(step.stage, step.generation, (), 0.0, rng.choice(changed)))
            continue
        timed = tuple(
            Timed(entry, math.prod(speeds[name] for name in entry) * math.exp(rng.gauss(0, 0.01)))
            for entry in step.entries
        )
        rounds.append(RacedRound(step.stage, step.generation, timed, float(len(timed))))
    return step


def test_a_race_ends_with_an_answer_whatever_fails_and_whenever() -> None:
    chosen = [_race_with_failures(seed).chosen for seed in range(150)]
    assert len({bool(each) for each in chosen}) == 2  # some find a gain, others have lost all that gained
