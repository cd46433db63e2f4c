"""The time a run still takes is taken from its own probes, is one figure that shrinks, and within the time budget."""

from typing import Any

import pytest

from engine.describe.time_left import GROWTH, Said, TimeLeft, describe_left, describe_round, next_said
from engine.describe.time_left.measurement import EXTRA_ROUNDS_SECONDS, SoFar, seconds_left, share_of_phase
from engine.facts.result import Outcome, Probe, Purpose
from engine.text.time_left import describe_most_left


def fits(size: int, step_seconds: float, purpose: Purpose = Purpose.SEARCH) -> Probe:
    return Probe(size, Outcome.FITS, purpose=purpose, steps=3, wall_seconds=3 * step_seconds)


def refused(size: int) -> Probe:
    return Probe(size, Outcome.OUT_OF_MEMORY, steps=0, wall_seconds=0.1)


def so_far(phase: str, *probes: Probe, **known: object) -> SoFar:
    return SoFar(phase, probes, **{"current_batch_size": 16, "soak_steps": 5, **known})


def left(phase: str, *probes: Probe, **known: object) -> float:
    seconds = seconds_left(so_far(phase, *probes, **known))
    assert seconds is not None
    return seconds


ONE, SIXTY = fits(1, 0.1), fits(60, 3.0)
SOAKED = fits(60, 1.8, Purpose.SOAK)
FOUND = (ONE, SIXTY, refused(61))


@pytest.mark.parametrize(
    ("phase", "probes", "expected"),
    [
        ("", (), 60),
        ("estimating", (), 60),
        ("searching", (ONE,), 60),  # one probe is no line
        ("searching", (ONE, fits(16, 1.0)), None),  # nothing to aim at
        ("searching", (ONE, SIXTY), 50),  # the estimate was too low: how far it goes on is open
        ("searching", (refused(16), refused(1)), 60),  # nothing trained
        ("timing", (), None),  # of a run that compares speeds again: not before its first round
    ],
)
def test_what_the_probes_do_not_show_is_not_told(phase, probes, expected):
    assert seconds_left(so_far(phase, *probes, expected=expected)) is None


def test_the_search_is_expected_to_end_at_the_estimate_or_below_what_was_refused():
    assert left("searching", *FOUND) < left("searching", ONE, fits(16, 1.0), expected=60)


def test_an_estimate_that_has_come_true_leaves_the_next_size_to_be_refused():
    there, before = (left("searching", ONE, fits(size, 3.0), expected=60) for size in (60, 59))
    assert there < before


def test_a_size_near_the_estimate_that_fitted_leaves_fewer_probes_to_expect():
    near, far = (left("searching", ONE, fits(size, size / 20), expected=60) for size in (55, 20))
    assert near < far


def test_a_step_beyond_those_measured_follows_the_line_and_is_at_most_in_proportion():
    flat, steep = (left("searching", fits(8, 1.0), fits(16, at_16), expected=160) for at_16 in (1.1, 2.0))
    assert flat < steep
    assert flat - EXTRA_ROUNDS_SECONDS < (steep - EXTRA_ROUNDS_SECONDS) / 2


def test_what_the_first_probe_loaded_is_not_expected_of_later_ones():
    assert left("curve", fits(1, 30.0), *FOUND[1:], SOAKED) == pytest.approx(
        left("curve", fits(1, 3.0), *FOUND[1:], SOAKED)
    )


def test_each_phase_leaves_less_to_do_than_the_one_before():
    shown = [left("searching", *FOUND), left("curve", *FOUND, SOAKED), left("timing", *FOUND, SOAKED)]
    shown.append(left("explaining", *FOUND, SOAKED))
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize("phase", ["searching", "soaking", "curve"])
def test_what_is_left_follows_from_the_probes_and_not_from_the_order_of_the_phases(phase):
    at_reserve = fits(56, 2.8, Purpose.CURVE)
    assert left(phase, *FOUND, at_reserve) < left(phase, *FOUND)
    assert left(phase, *FOUND, at_reserve, SOAKED) < left(phase, *FOUND, at_reserve)


def test_a_size_that_was_measured_is_no_longer_planned():
    assert left("curve", *FOUND, fits(16, 0.8, Purpose.CURVE)) < left("curve", *FOUND)


def test_a_new_process_takes_its_time():
    quick, slow = (left("soaking", *FOUND, open_seconds=seconds) for seconds in (0.0, 10.0))
    # the long run, the comparison and the finding out of what filled the memory have one each
    assert slow == pytest.approx(quick + 30)


def test_what_a_probe_has_taken_is_taken_off_and_never_all_of_it():
    times = [left("soaking", *FOUND, under_way_seconds=seconds) for seconds in (0.0, 1.0, 1e6)]
    assert times[0] - times[1] == pytest.approx(1.0)
    assert times[2] > left("curve", *FOUND, SOAKED)


def test_the_engines_own_figure_stands_while_it_compares_speeds():
    alone = left("explaining", *FOUND)
    assert left("timing", *FOUND, timing_seconds_left=41.0) == pytest.approx(41.0 + alone)
    assert left("timing", timing_seconds_left=41.0) == 41.0  # of a run that compares speeds again


def share(phase: str, *probes: Probe, **known: object) -> float:
    return share_of_phase(so_far(phase, *probes, **known))


def test_the_share_of_a_phase_rises_with_its_probes_and_stays_below_all_of_it():
    searched = [share("searching", *probes, expected=60) for probes in ((), (ONE,), (ONE, fits(55, 2.8)))]
    assert searched[0] == 0
    assert searched == sorted(searched)
    assert max(searched) < 1
    drawn = [share("curve", *FOUND, *more) for more in ((), (fits(16, 0.8, Purpose.CURVE),))]
    assert 0 == drawn[0] < drawn[1] < 1
    assert share("soaking", *FOUND) == 0


def event(name: str, seconds: float, **content: Any) -> dict[str, Any]:
    return {"event": name, "seconds": seconds, **content}


def probe(size: int, seconds: float, *, fits: bool = True, purpose: Purpose = Purpose.SEARCH) -> dict[str, Any]:
    outcome = Outcome.FITS if fits else Outcome.OUT_OF_MEMORY
    found = Probe(size, outcome, purpose=purpose, steps=3, wall_seconds=3.0)
    return event("probe", seconds, probe=found.to_dict())


def followed(*events: dict[str, Any], **spec: Any) -> TimeLeft:
    time_left = TimeLeft(spec)
    for each in events:
        time_left.take(each)
        time_left.say(each["seconds"])
    return time_left


SEARCH = (event("phase", 1.0, phase="searching"), probe(1, 4.0), probe(60, 7.0), probe(61, 9.0, fits=False))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "about 5 s left"),
        (12, "about 10 s left"),
        (58, "about 1 min left"),
        (100, "about 2 min left"),
        (179, "about 3 min left"),
        (200, "about 3 min left"),
        (1_000, "about 15 min left"),
        (3_601, "about 1 h left"),
        (5_000, "about 1 h 30 min left"),
    ],
)
def test_a_figure_is_rounded_more_the_longer_it_is(seconds: float, text: str) -> None:
    assert describe_left(seconds) == text


def test_a_round_stands_in_its_expected_number() -> None:
    assert describe_round(4, 8) == "round 4 of about 8"
    assert describe_round(9, 8) == describe_round(9, None) == "round 9"


def test_the_figure_counts_down_and_only_what_is_clearly_larger_raises_it() -> None:
    said = next_said(None, 100.0, 10.0)
    assert said == Said(100.0, 10.0)
    assert said.left(30.0) == 80.0
    assert next_said(said, 82.0, 30.0) == said
    assert next_said(said, 50.0, 30.0) == Said(50.0, 30.0)
    assert next_said(said, 80.0 * GROWTH * GROWTH, 30.0) == Said(80.0 * GROWTH * GROWTH, 30.0)
    assert next_said(said, None, 30.0) == said
    assert said.left(1_000.0) == 0.0


def test_nothing_is_said_of_a_measurement_before_its_probes_show_it() -> None:
    assert followed(*SEARCH[:2]).said is None
    assert followed(*SEARCH).said is not None


def test_the_time_budget_bounds_it() -> None:
    assert (followed(*SEARCH).left(9.0) or 0.0) > 20.0
    assert followed(*SEARCH, time_budget_seconds=20.0).left(9.0) == pytest.approx(11.0)


def test_a_race_has_at_most_the_rest_of_its_time_budget_from_the_start() -> None:
    race = followed(event("phase", 1.0, phase="timing"), tried=None, time_budget_seconds=1_800.0)
    assert [race.left(now) for now in (1.0, 1_000.0, 2_000.0)] == [1_799.0, 800.0, 0.0]
    assert race.said is None


@pytest.mark.parametrize(("seconds", "text"), [(12, "15 s"), (61, "2 min"), (1_000, "20 min"), (1_799, "30 min")])
def test_the_most_that_is_left_is_rounded_up(seconds: float, text: str) -> None:
    assert describe_most_left(seconds) == f"at most {text} left"


def test_it_goes_on_from_what_was_stored() -> None:
    whole, first = followed(*SEARCH, event("phase", 9.0, phase="soaking")), followed(*SEARCH)
    second = TimeLeft({}, first.progress, first.probes)
    second.take(event("phase", 9.0, phase="soaking"))
    second.say(9.0)
    assert second.said == whole.said
    assert second.progress == whole.progress


def test_a_tuning_is_known_by_its_command_and_counts_its_starts() -> None:
    starting = (event("phase", 0.0, phase="searching"), event("probe_started", 0.0, batch_size=16))
    assert followed(*starting, command=["python"]).said is None
    one = followed(*starting, probe(16, 3.0), command=["python"]).left(3.0)
    two = followed(*starting, probe(16, 3.0), probe(512, 6.0), command=["python"]).left(6.0)
    assert one is not None
    assert two is not None
    assert one > two > 0


def test_two_phases_that_begin_at_once_are_told_apart() -> None:
    phases = [event("phase", 9.0, phase=name) for name in ("curve", "timing")]
    timing = event("timing", 9.0, round=3, rounds_expected=8, seconds_left=40.0)
    assert followed(*SEARCH, *phases, timing, function="step").left(9.0) == 40.0


def test_the_cards_of_an_estimate_take_as_long_as_those_before() -> None:
    started = event("started", 0.0, gpus=["a10"] * 20)
    tracing = (
        started,
        event("phase", 0.0, phase="tracing"),
        event("stage", 0.0, stage="importing torch"),
        event("stage", 5.0, stage="tracing training steps as on an A10"),
    )
    early = followed(*tracing).left(5.0)
    assert early is not None
    assert 1.0 < early < 20.0
    cards = [event("estimate", 10.0 + number, estimate={}) for number in range(1, 6)]
    assert followed(*tracing, event("phase", 10.0, phase="predicting", cards=20), *cards).left(15.0) == pytest.approx(
        15.0, abs=10.0
    )


def test_a_validation_is_known_from_its_second_kind_of_steps_on() -> None:
    def measuring(seconds: float) -> dict[str, Any]:
        return event("progress", seconds, purpose="memory", batch_size=8, step=1)

    begun = (event("phase", 0.0, phase="preparing"), event("phase", 2.0, phase="memory"), measuring(2.0))
    assert followed(*begun, check="backward").said is None
    both = followed(*begun, measuring(12.0), check="backward").left(12.0)
    gradients = followed(*begun, measuring(12.0), event("phase", 40.0, phase="gradients"), check="backward").left(40.0)
    assert both is not None
    assert gradients is not None
    assert both > gradients > 0


def test_a_compilation_that_takes_longer_leaves_more_of_what_is_compiled_again() -> None:
    def compiled(seconds: float) -> float:
        steps = [event("progress", at, purpose="memory", batch_size=8, step=1) for at in (1.0, 2.0 + seconds)]
        events = (event("phase", 1.0, phase="memory"), steps[0], event("phase", 2.0, phase="compiling"), steps[1])
        return followed(*events, check="compile").left(2.0 + seconds) or 0.0

    assert 0 < compiled(10.0) < compiled(40.0)


@pytest.mark.parametrize(
    "hostile",
    [
        event("timing", 1.0, round=2, seconds_left=10**400),
        event("timing", 1.0, round=2, seconds_left=float("inf"), rounds_expected="x"),
        event("estimate", 1.0, estimate={"largest_batch_size": 10**400}),
        event("phase", float("nan"), phase="timing" * 99, cards=10**400),
    ],
)
def test_figures_of_no_run_are_not_believed(hostile: dict[str, Any]) -> None:
    time_left = followed(*SEARCH, hostile)
    assert time_left.left(9.0) is None or time_left.left(9.0) < 1e6
    assert "inf" not in str(time_left.progress)
