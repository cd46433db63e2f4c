"""Waste, speed-up and money follow their stated formulas; a size is recommended only where today's is known."""

from dataclasses import replace

import pytest

from engine.build_result import answer
from engine.describe.result import answer_of
from engine.results.intervals import Interval
from engine.results.result import Boundary, DeviceFacts, Outcome, Point, Probe, Reason, RunResult, Timings
from engine.results.savings import cost_per_million_samples_usd, savings, waste
from engine.results.speed_rounds import SpeedClaim
from engine.spec import RunSpec
from engine.speed.comparison import Comparison
from tests.factories import make_probe, make_refusal, make_spec


def point(samples_per_second: float | None, memory_bytes: int | None = None) -> Point:
    return Point(16, samples_per_second, None, memory_bytes, None, memory_bytes)


def exactly(speedup: float) -> Interval:
    return Interval(speedup, speedup, speedup)


def test_the_classic_example_of_2_5x_saves_48_cents_a_run_and_48_dollars_a_year():
    money = savings(RunSpec("bert", price_per_hour_usd=0.40, hours_per_run=2, runs_per_year=100), exactly(2.5))
    assert money.per_run_usd == pytest.approx(0.48)
    assert money.per_year_usd == pytest.approx(48.0)


def test_the_saving_is_as_uncertain_as_the_speed_up():
    money = savings(RunSpec("bert", price_per_hour_usd=1, hours_per_run=2, runs_per_year=10), Interval(0.8, 1, 2))
    assert (money.per_run_usd_low, money.per_run_usd, money.per_run_usd_high) == pytest.approx((-0.5, 0, 1))
    assert (money.per_year_usd_low, money.per_year_usd, money.per_year_usd_high) == pytest.approx((-5, 0, 10))


def test_without_a_speed_up_there_is_no_saving():
    money = savings(RunSpec("bert"), None)
    assert (money.per_run_usd, money.per_year_usd_high) == (None, None)


def test_waste_is_capacity_minus_memory_at_both_sizes():
    unused = waste(1000, point(1, 100), point(1, 900))
    assert (unused.at_current_bytes, unused.at_current_fraction) == (900, 0.9)
    assert (unused.at_recommended_bytes, unused.at_recommended_fraction) == (100, 0.1)


def test_waste_at_a_size_that_was_not_measured_is_unknown():
    assert waste(1000, None, point(1, None)).at_current_bytes is None


def test_the_context_counts_on_a_whole_card_and_what_others_held_does_not():
    probe = Probe(16, Outcome.FITS, peak_allocated_bytes=80, peak_reserved_bytes=90, device_used_bytes=95)
    alone = DeviceFacts("cuda:0", "cuda", "card", 100, limit_bytes=100)
    assert Point.of(probe, alone).memory_bytes == 95
    assert Point.of(probe, replace(alone, foreign_used_bytes=3)).memory_bytes == 92
    listed = {"foreign_processes": ({"pid": 1, "used_bytes": None},), "foreign_used_bytes": None}
    assert Point.of(probe, replace(alone, **listed)).memory_bytes == 90
    assert Point.of(probe, replace(alone, limit_bytes=92)).memory_bytes == 90


def test_a_million_samples_cost_the_price_of_the_hours_they_take() -> None:
    assert cost_per_million_samples_usd(3.6, 1_000) == pytest.approx(1.0)


@pytest.mark.parametrize(("price", "speed"), [(None, 100.0), (1.0, None), (1.0, 0.0)])
def test_without_a_price_or_a_speed_there_is_no_cost(price: float | None, speed: float | None) -> None:
    assert cost_per_million_samples_usd(price, speed) is None


CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A10", 2**34, limit_bytes=2**34)
FASTEST_IS_4 = Comparison(
    claim=SpeedClaim.FIGURE, recommended=4, fastest=4, speeds={2: Interval(9, 10, 11), 4: Interval(19, 20, 21)}
)


def compared(today: int, *refused: int) -> RunResult:
    probes = [make_probe(1), make_probe(2), make_probe(4), *map(make_refusal, refused)]
    boundary = Boundary(4, certified=False, refused_batch_size=None, reason=Reason.MAX_BATCH_SIZE)
    spec = make_spec(current_batch_size=today, max_batch_size=4)
    return answer(spec, CARD, boundary, probes, FASTEST_IS_4, environment={}, timings=Timings())


def test_nothing_below_a_size_of_today_that_nobody_refused_is_recommended() -> None:
    result = compared(16)
    assert result.recommended is None
    assert result.speed is not None
    assert (result.fastest, result.speedup) == (None, None)
    assert result.speed.reason == "the default 16 was not measured here: no speed to compare with"
    assert answer_of(result).text.startswith(
        "At least 4 fit. None is recommended. The default 16 was not measured here"
    )


@pytest.mark.parametrize(("today", "refused"), [(16, (5,)), (4, ()), (16, (16,))])
def test_where_todays_size_trained_or_was_refused_the_fastest_is_recommended(today: int, refused: tuple) -> None:
    result = compared(today, *refused)
    assert result.recommended is not None
    assert result.recommended.batch_size == 4
