"""Charts of several runs, as data: axes, looks, limits, refusals, labels that do not overlap."""

from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from analysis.charts.axes import batch_axis, bytes_axis, change_axis, rate_axis, time_axis
from analysis.charts.plots import COLOURS, DASHES, Plot, SeriesStyle
from analysis.lists.comparison.compared_run import compared_run_of
from analysis.lists.comparison.query import CompareQuery
from analysis.models import Run
from analysis.pages.compare.plots import compare_plots, memory_plot, speed_plot, tradeoff_plot
from engine.text.units import GIB
from tests.charts.drawn import drawn, having, places, points, words
from tests.factories import make_spec
from tests.factories.results import estimate, result, subject
from tests.factories.speeds import make_timed_result

DAY = 86_400


def memory(*, is_log_x: bool = True, is_log_y: bool = False) -> Plot:
    subjects = [subject(1), subject(2, result(12, bytes_per_sample=2 * GIB))]
    plot = memory_plot(subjects, is_log_x=is_log_x, is_log_y=is_log_y)
    assert plot is not None
    return plot


def test_a_run_keeps_its_look_and_no_two_near_each_other_share_it() -> None:
    looks = [SeriesStyle.of(number) for number in range(1, 281)]
    assert len(set(looks)) == 280
    assert SeriesStyle.of(3) == looks[2]


def test_the_stylesheet_has_every_colour_and_every_dash() -> None:
    rules = finders.find("css/charts.css")
    assert rules is not None
    css = Path(rules).read_text()
    assert [name for name in range(COLOURS) if f".series-{name} " not in css] == []
    assert [name for name in range(1, DASHES) if f".dash-{name} " not in css] == []


def test_every_out_of_memory_is_a_cross_on_the_limit_of_its_run() -> None:
    first, second = memory().traces
    assert [(cross.x, cross.y) for cross in first.crosses] == [(9, 40 * GIB)]
    assert second.crosses[0].text == "run 2, batch 13: out of memory"
    drawing = drawn(memory())
    assert {y for _, y in places(drawing, "cross")} == {y for _, y in points(drawing, "limit")}


def test_runs_held_to_one_limit_share_its_line() -> None:
    assert [level.text for level in memory().levels] == ["limit 40 GiB"]
    smaller = subject(3, result(waste=result().waste.__class__(24 * GIB, None, None, None, None)))
    plot = memory_plot([subject(1), subject(2), smaller], is_log_x=True, is_log_y=False)
    assert plot is not None
    assert [level.text for level in plot.levels] == ["40 GiB (1, 2)", "24 GiB (3)"]


def test_limits_close_by_and_runs_are_all_named() -> None:
    near = [
        subject(number, result(waste=result().waste.__class__(limit, None, None, None, None)))
        for number, limit in enumerate((40 * GIB, 39 * GIB, 41 * GIB), start=1)
    ]
    plot = memory_plot(near, is_log_x=True, is_log_y=False)
    assert plot is not None
    assert {*(level.text for level in plot.levels), "run 1", "run 2", "run 3"} <= set(words(drawn(plot)))


def test_an_estimate_is_drawn_hollow_and_never_called_measured() -> None:
    guess = compared_run_of(
        Run(pk=2, kind="estimate", state="finished", spec=make_spec().to_dict(), result=estimate(9))
    )
    plot = memory_plot([subject(1), guess], is_log_x=True, is_log_y=False)
    assert plot is not None
    assert plot.kinds == "measured and estimated"
    assert plot.traces[1].note == "would run out of memory at 10"
    drawing = drawn(plot)
    assert [trace.get("class", "").endswith("is-estimate") for trace in having(drawing, "trace")] == [False, True]
    assert [cross.get("class") for cross in having(drawing, "cross")] == ["cross", "cross is-estimate"]


def test_a_speed_with_an_interval_has_an_error_bar() -> None:
    timed = subject(1, make_timed_result(spec=make_spec(current_batch_size=4)))
    plot = speed_plot([timed, subject(2)], is_log_x=True, is_log_y=False)
    assert plot is not None
    assert [dot.x for trace in plot.traces for dot in trace.dots if dot.interval] == [4, 8]
    assert plot.y.high >= 17


def test_the_toggles_change_both_axes_of_the_curves() -> None:
    plots = compare_plots([subject(1), subject(2)], CompareQuery((1, 2), x="linear", y="log"))
    assert [(plot.key, plot.x.is_log, plot.y.is_log) for plot in plots] == [
        ("memory", False, True),
        ("throughput", False, True),
        ("tradeoff", False, False),
    ]


def test_the_trade_off_has_a_point_for_each_size_of_which_both_are_known() -> None:
    plot = tradeoff_plot([subject(1), subject(2, result(4, bytes_per_sample=2 * GIB))])
    assert plot is not None
    assert [len(trace.dots) for trace in plot.traces] == [4, 3]
    assert all(speed <= 100 for _, speed in plot.front)
    assert plot.sentence.endswith("It has points of run 1.")


def test_the_table_says_what_was_not_tried_and_what_ran_out_of_memory() -> None:
    rows = {row[0]: row[1:] for row in memory().table.rows}
    assert rows["8"] == ("8.0 GiB", "16.0 GiB")
    assert rows["9"] == ("out of memory", "–")
    assert rows["12"] == ("–", "24.0 GiB")


def test_without_a_measured_size_there_is_no_chart() -> None:
    waiting = compared_run_of(Run(pk=2, state="queued", model="bert-tiny", spec=make_spec().to_dict()))
    assert compare_plots([waiting], CompareQuery((2, 3))) == []


@pytest.mark.parametrize(
    "axis",
    [
        batch_axis([1, 1000], is_log=True),
        batch_axis([1, 1000], is_log=False),
        batch_axis([7], is_log=True),
        bytes_axis([GIB, 80 * GIB], is_log=True),
        bytes_axis([GIB, 80 * GIB], is_log=False),
        rate_axis([0.4, 3000.0], is_log=True),
        rate_axis([180.0, 420.0], is_log=True),
        rate_axis([10.0], is_log=True),
        change_axis([0.0, 0.062], title="change"),
        time_axis([0.0, 40 * DAY]),
        time_axis([0.0]),
    ],
    ids=lambda axis: f"{axis.title}-{axis.high}",
)
def test_ticks_lie_on_the_axis_are_few_and_read_differently(axis) -> None:
    assert 1 <= len(axis.ticks) <= 12
    assert all(0 <= axis.fraction(value) <= 1 for value, _ in axis.ticks)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks)
    if "UTC" not in axis.title:
        assert axis.fraction(axis.ticks[-1][0]) == 1


def test_every_axis_has_its_unit() -> None:
    plots = compare_plots([subject(1), subject(2)], CompareQuery((1, 2)))
    units = ("sample", "GiB", "%", "UTC")
    axes = [axis for plot in plots for axis in (plot.x, plot.y)]
    axes += [change_axis([0.1], title="change"), time_axis([0.0])]
    named = [axis.title + "".join(text for _, text in axis.ticks) for axis in axes]
    assert [text for text in named if not any(unit in text for unit in units)] == []
