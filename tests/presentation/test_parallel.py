"""Parallel coordinates: which axes there are, where a run stands on them, what a gap is."""

from __future__ import annotations

from analysis.presentation.charts.parallel import (
    BOTTOM,
    CHARACTER,
    HEIGHT,
    LEFT,
    NARROW_SIDE,
    NARROW_WIDTH,
    RIGHT,
    TOP,
    WIDTH,
    Dimension,
    ParallelChart,
    ParallelRun,
    parallel_chart,
)
from analysis.presentation.charts.plots import SeriesStyle
from engine.speed.claim import describe_lower_bound


def runs(count: int) -> list[ParallelRun]:
    return [ParallelRun(f"run {number}", f"/runs/{number}/", SeriesStyle.of(number)) for number in range(1, count + 1)]


def chart(*dimensions: Dimension) -> ParallelChart:
    drawn = parallel_chart(runs(len(dimensions[0].values)), dimensions)
    assert drawn is not None
    return drawn


LARGEST = Dimension("Largest", (8, 24, 40), lambda size: f"{size:,.0f}")
PRECISION = Dimension("Precision", ("fp32", "bf16", "bf16"))


def test_numbers_stand_by_their_size_and_texts_at_equal_distances() -> None:
    drawn = chart(PRECISION, LARGEST)
    foot, middle = HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    first, second, third = (line.dots for line in drawn.wide.lines)
    assert first == ((f"{LEFT:.1f}", f"{TOP:.1f}"), (f"{WIDTH - RIGHT:.1f}", f"{foot:.1f}"))
    assert second == ((f"{LEFT:.1f}", f"{foot:.1f}"), (f"{WIDTH - RIGHT:.1f}", f"{middle:.1f}"))
    assert third[1][1] == f"{TOP:.1f}"


def test_what_is_the_same_in_all_runs_has_no_axis_and_is_said() -> None:
    drawn = chart(PRECISION, Dimension("GPU", ("A100",) * 3), LARGEST)
    assert [axis.title.text for axis in drawn.wide.axes] == ["Precision", "Largest"]
    assert drawn.same == (("GPU", "A100"),)


def test_a_value_that_only_some_runs_have_is_not_called_the_same_in_all() -> None:
    assert chart(PRECISION, LARGEST, Dimension("Today", (4, None, 4))).same == ()


def test_a_lower_bound_is_written_as_one_and_never_rounded_up() -> None:
    speedup = Dimension(
        "Speed-up", (1.039, 1.5, None), lambda value: f"{value:.2f}x", frozenset({0}), describe_lower_bound
    )
    drawn = chart(PRECISION, speedup)
    assert drawn.table.rows[0] == ("run 1", "fp32", "≥ 1.03x")
    assert drawn.table.rows[1] == ("run 2", "bf16", "1.50x")
    assert [tick.text for tick in drawn.wide.axes[1].ticks] == ["1.50x", "≥ 1.03x"]


def test_texts_of_an_axis_end_before_the_next_one() -> None:
    script = Dimension("Model", ("examples/run_clm.py", "BERT tiny", "BERT tiny"))
    others = [Dimension(f"Figure {number}", (1, 2, 3)) for number in range(9)]
    drawn = chart(script, *others)
    room = float(drawn.wide.axes[1].start[0]) - float(drawn.wide.axes[0].start[0])
    assert max(len(tick.text) for tick in drawn.wide.axes[0].ticks) * CHARACTER < room


def test_a_missing_value_is_a_gap_and_a_dash() -> None:
    drawn = chart(PRECISION, Dimension("Speed", (1.0, None, 3.0)), LARGEST)
    assert [len(line.strokes) for line in drawn.wide.lines] == [2, 0, 2]
    assert [len(line.dots) for line in drawn.wide.lines] == [3, 2, 3]
    assert drawn.table.rows[1] == ("run 2", "bf16", "–", "24")
    assert "Speed" not in drawn.wide.lines[1].text


def test_texts_of_an_axis_keep_apart_and_its_ends_are_always_there() -> None:
    axis = chart(PRECISION, Dimension("Largest", (8, 9, 400), str)).wide.axes[1]
    assert [tick.text for tick in axis.ticks] == ["400", "8"]


def test_on_a_phone_the_axes_stand_below_each_other_and_their_texts_end_within_the_picture() -> None:
    model = Dimension("Model", ("examples/run_clm.py", "BERT tiny", "GPT-2 small"))
    drawn = chart(model, PRECISION, LARGEST).narrow
    assert [axis.start[0] for axis in drawn.axes] == [axis.start[0] for axis in drawn.axes[:1]] * 3
    assert [line.dots[2] for line in drawn.lines] == [
        (f"{x:.1f}", drawn.axes[2].start[1]) for x in (NARROW_SIDE, NARROW_WIDTH / 2, NARROW_WIDTH - NARROW_SIDE)
    ]
    for tick in drawn.axes[0].ticks:
        length = len(tick.text) * CHARACTER
        start = float(tick.x) - (length if tick.anchor == "end" else 0)
        assert 0 <= start <= NARROW_WIDTH - length


def test_runs_that_hardly_differ_have_no_picture() -> None:
    assert parallel_chart(runs(3), [LARGEST, Dimension("GPU", ("A100",) * 3)]) is None
