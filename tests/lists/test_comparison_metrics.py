"""Figures beside each other: differences, verdicts, and the batch size that all have in common."""

from dataclasses import replace
from typing import Any

import pytest

from analysis.charts.plots import pareto_front
from analysis.formatting import number
from analysis.lists.comparison.compared_run import ComparedRun, Outcome, compared_run_of
from analysis.lists.comparison.metrics import (
    Cell,
    Delta,
    Metric,
    common_batch_size,
    delta,
    metric_rows,
    million_samples_usd,
)
from analysis.models import Run
from engine.facts.result import Reason
from engine.text.units import GIB
from tests.factories import make_result_that_does_not_fit, make_spec
from tests.factories.results import estimate, result, subject
from tests.factories.speeds import SPEED, make_unmeasurable_result


def metric(better: str, noise_fraction: float = 0.0) -> Metric:
    return Metric("synthetic", "made up", "measured", lambda outcome: None, number, better, noise_fraction)


@pytest.mark.parametrize(
    ("better", "value", "verdict", "arrow", "word"),
    [
        ("higher", 110, "better", "▲", "better"),
        ("higher", 90, "worse", "▼", "worse"),
        ("lower", 110, "worse", "▲", "worse"),
        ("lower", 90, "better", "▼", "better"),
        ("", 110, "", "▲", "more"),
        ("", 90, "", "▼", "less"),
        ("higher", 100, "same", "=", "the same"),
    ],
)
def test_a_difference_is_judged_by_its_metric(better: str, value: float, verdict: str, arrow: str, word: str) -> None:
    found = delta(metric(better), value, 100)
    assert (found.verdict, found.arrow, found.word) == (verdict, arrow, word)


def test_speeds_within_the_noise_are_about_the_same() -> None:
    assert delta(metric("higher", 0.03), 102, 100).word == "about the same"
    assert delta(metric("higher", 0.03), 104, 100).word == "better"


def timed(low: float, value: float, high: float, **columns: Any) -> ComparedRun:
    answer = result()
    assert answer.recommended is not None
    point = replace(
        answer.recommended, samples_per_second=value, samples_per_second_low=low, samples_per_second_high=high
    )
    return subject(int(value), replace(answer, speed=SPEED, recommended=point, fastest=point), **columns)


@pytest.mark.parametrize(
    ("other", "word"), [(timed(104, 112, 120), "about the same"), (timed(107, 112, 120), "better")]
)
def test_speeds_whose_intervals_meet_are_the_same(other: ComparedRun, word: str) -> None:
    base, cell = row("Samples/s, recommended", [timed(96, 100, 106), other])
    assert cell.delta is not None
    assert (base.interval_text, cell.delta.word) == ("96.0 to 106", word)


def test_a_cost_has_the_interval_of_the_speed_the_other_way_round() -> None:
    cell = row("A million samples", [timed(50, 100, 200)])[0]
    assert cell.value is not None
    assert cell.interval == pytest.approx((cell.value / 2, cell.value * 2))


def test_a_speed_that_was_not_measurable_is_no_figure_and_says_why() -> None:
    answer = make_unmeasurable_result()
    busy = compared_run_of(Run(pk=2, model="bert-tiny", spec=answer.spec.to_dict(), result=answer.to_dict()))
    assert row("Samples/s, recommended", [subject(1), busy])[1].text == "not measured"
    assert busy.caveat == "other programs used 1.6 of 2 cores"


@pytest.mark.parametrize(
    ("fraction", "percent"), [(0.004, "+0.4 %"), (-0.481, "−48 %"), (1.5, "+150 %"), (22.822, "23.8x"), (0, "")]
)
def test_a_change_is_written_with_the_figures_that_tell_something(fraction: float, percent: str) -> None:
    assert delta(metric("higher"), 1000 + 1000 * fraction, 1000).percent == percent


@pytest.mark.parametrize("other", [{"model": "bert"}, {"spec": make_spec(sequence_length=64).to_dict()}])
def test_another_model_or_input_has_figures_and_no_differences(other: dict[str, Any]) -> None:
    cells = [row.cells[1] for row in metric_rows([subject(1), subject(2, result(2, speed=27.0), **other)], subject(1))]
    assert [cell.delta for cell in cells] == [None] * len(cells)
    assert cells[0].text == "2"


def test_a_model_that_does_not_fit_has_no_largest_size() -> None:
    cell = row("Largest batch size", [subject(1), subject(2, make_result_that_does_not_fit())])[1]
    assert (cell.text, cell.delta) == ("does not fit", None)


def test_from_nothing_there_is_no_percentage() -> None:
    assert delta(metric("higher"), 8, 0) == Delta(8, None, "better", "+8")


def row(name: str, subjects: list[ComparedRun]) -> tuple[Cell, ...]:
    return next(row.cells for row in metric_rows(subjects, subjects[0]) if row.name == name)


def test_the_baseline_has_figures_and_no_differences() -> None:
    base, other = row("Largest batch size", [subject(1), subject(2, result(12))])
    assert (base.text, base.delta) == ("8", None)
    assert other.delta is not None
    assert (other.text, other.delta.text, other.delta.percent) == ("12", "+4", "+50 %")


def test_peaks_are_compared_at_the_largest_size_that_all_measured() -> None:
    subjects = [subject(1, result(8)), subject(2, result(12, bytes_per_sample=2 * GIB))]
    assert common_batch_size(subjects) == 8
    base, other = row("Peak memory at batch 8", subjects)
    assert (base.text, other.text) == ("8.0 GiB", "16.0 GiB")
    assert other.delta is not None
    assert other.delta.verdict == "worse"


def test_without_a_common_size_no_peak_is_compared() -> None:
    nothing = subject(2, make_result_that_does_not_fit())
    assert common_batch_size([subject(1), nothing]) is None
    assert "Peak" not in " ".join(row.name for row in metric_rows([subject(1), nothing], None))


def test_a_limit_that_was_not_found_is_a_lower_bound() -> None:
    assert row("Largest batch size", [open_ended(1, 8)])[0].text == "≥ 8"


def open_ended(number: int, largest: int) -> ComparedRun:
    answer = result(largest)
    boundary = replace(answer.boundary, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)
    return subject(number, replace(answer, boundary=boundary))


def test_two_lower_bounds_have_no_difference() -> None:
    assert row("Largest batch size", [open_ended(1, 22), open_ended(2, 39)])[1].delta is None


@pytest.mark.parametrize(
    ("base", "other", "percent", "verdict"),
    [
        (subject(1, result(22)), open_ended(2, 39), "at least +77 %", "better"),
        (open_ended(1, 39), subject(2, result(22)), "at least −44 %", "worse"),
    ],
)
def test_a_lower_bound_that_decides_gives_the_least_difference(
    base: ComparedRun, other: ComparedRun, percent: str, verdict: str
) -> None:
    found = row("Largest batch size", [base, other])[1].delta
    assert found is not None
    assert (found.percent, found.verdict, found.text[:9]) == (percent, verdict, "at least ")


@pytest.mark.parametrize(
    ("base", "other"), [(subject(1, result(39)), open_ended(2, 22)), (open_ended(1, 22), subject(2, result(39)))]
)
def test_a_lower_bound_that_decides_nothing_has_no_difference(base: ComparedRun, other: ComparedRun) -> None:
    assert row("Largest batch size", [base, other])[1].delta is None


def test_another_memory_limit_of_the_same_card_is_named_and_neither_better_nor_worse() -> None:
    wide, narrow = result(12), result(8)
    held = replace(narrow.waste, capacity_bytes=8 * GIB)
    found = row("Largest batch size", [subject(1, replace(narrow, waste=held)), subject(2, wide)])[1].delta
    assert found is not None
    assert (found.percent, found.verdict, found.word) == ("+50 %", "", "more")
    assert found.note == "with 40.0 GiB against 8.0 GiB"


@pytest.mark.parametrize(("value", "base"), [(16 * GIB - 4, 16 * GIB), (1_000_000, 1_000_400), (7, 7)])
def test_a_difference_that_rounds_to_nothing_is_the_same(value: float, base: float) -> None:
    found = delta(metric("lower"), value, base)
    assert (found.word, found.arrow, found.percent, found.text) == ("the same", "=", "", "")


def test_one_sample_more_is_a_difference() -> None:
    found = row("Largest batch size", [subject(1, result(8)), subject(2, result(9))])[1].delta
    assert found is not None
    assert (found.text, found.word) == ("+1", "better")


def test_a_million_samples_cost_their_time() -> None:
    cost = million_samples_usd(Outcome(samples_per_second=1000.0, price_per_hour_usd=3.6))
    assert cost == pytest.approx(1.0)
    assert million_samples_usd(Outcome(price_per_hour_usd=3.6)) is None


def test_an_estimate_is_neither_better_nor_worse_than_a_measurement() -> None:
    guess = compared_run_of(
        Run(pk=2, kind="estimate", state="finished", model="bert-tiny", spec=make_spec().to_dict(), result=estimate(9))
    )
    largest = row("Largest batch size", [subject(1), guess])[1]
    assert largest.delta is not None
    assert (largest.text, largest.delta.word) == ("9", "more")
    assert row("Samples/s, fastest", [subject(1), guess])[1].text == "not estimated"
    assert [cell.text for cell in row("Largest with margin", [subject(1), guess])] == ["–", "8"]
    assert row("Recommended batch size", [subject(1), guess])[1].text == "none"


def test_an_estimate_that_ends_at_the_searchs_own_maximum_is_a_lower_bound() -> None:
    answer = estimate(9)
    answer["estimates"][0]["limits"] = "max_batch_size"
    guess = compared_run_of(Run(pk=2, kind="estimate", model="bert-tiny", spec=make_spec().to_dict(), result=answer))
    assert row("Largest batch size", [guess])[0].text == "≥ 9"


def test_a_run_without_a_result_has_no_figures() -> None:
    waiting = compared_run_of(Run(pk=2, state="queued", model="bert-tiny", spec=make_spec().to_dict()))
    assert {cell.text for cell in row("Largest batch size", [waiting])} == {"not measured"}
    assert common_batch_size([subject(1), waiting]) == 8


def test_nothing_on_the_pareto_line_is_beaten() -> None:
    assert pareto_front([(3, 8), (1, 5), (2, 9), (2, 7), (1, 5)]) == ((1, 5), (2, 9))
