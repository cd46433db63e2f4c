"""The time left of any kind of run is one figure that shrinks, rounded, and within the time budget."""

from typing import Any

import pytest

from engine.results.result import Outcome, Probe, Purpose
from engine.text.time_left import describe_most_left
from engine.time_left import GROWTH, Said, TimeLeft, describe_left, describe_round, next_said


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
