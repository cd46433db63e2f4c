"""Length x batch on a page: the rows with what was measured of them, and the picture."""

from typing import Any

from analysis.presentation.what_to_change import frontier_plot, frontier_shown
from analysis.runs.earlier.what_to_change import Measured
from engine.estimate.frontier import frontier_of, grid_of, specs_of
from engine.estimate.predict import estimate
from engine.questions.documents.estimated import StoredFrontier
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from tests.engine.estimate.synthetic_models import card, model


def stored_frontier(*sizes: int, model_id: str = "bert-tiny", sample_bytes: int = MIB) -> dict[str, Any]:
    """Return a surface as a result has it: a sample takes as many MiB as its size is times the first one."""
    spec = RunSpec(model_id)
    made = [
        estimate(
            each,
            card(),
            model(sample_bytes=each.input_size * sample_bytes // sizes[0]),
            seconds=1.0,
            versions={},
            batch_sizes=grid_of(spec),
        )
        for each in specs_of(spec, sizes)
    ]
    return frontier_of(spec, made).to_dict()


def shown_of(stored: dict[str, Any], measured: dict[int, Measured]) -> dict[str, Any]:
    return frontier_shown(StoredFrontier.from_dict(stored), measured)


def test_each_length_is_a_row_with_its_batch_sizes_and_memory() -> None:
    stored = stored_frontier(64, 128)
    shown = shown_of(stored, {})
    assert (shown["title"], [row["of"].input_size for row in shown["rows"]]) == ("What fits at each length", [64, 128])
    assert [row["safe"] for row in shown["rows"]] == [f"{row['safe_batch_size']:,}" for row in stored["rows"]]
    assert all(len(row["cells"]) == len(shown["grid"]) for row in shown["rows"])
    assert (shown["rows"][0]["speed"], shown["rows"][0]["run_id"]) == ("", None)


def test_a_size_that_does_not_fit_is_marked() -> None:
    shown = shown_of(stored_frontier(64, 128, sample_bytes=1024 * MIB), {})
    marked = [cell.endswith("✕") for cell in shown["rows"][1]["cells"]]
    assert marked == [size > int(shown["rows"][1]["largest"]) for size in shown["grid"]]
    assert any(marked)


def test_memory_is_in_mib_where_the_limit_is_small() -> None:
    stored = stored_frontier(64, 128)
    shown = shown_of({**stored, "limit_bytes": 256 * MIB}, {})
    first = stored["rows"][0]["cells"][0]
    assert first["fits"]
    assert (shown["memory_unit"], shown["rows"][0]["cells"][0]) == ("MiB", f"{first['memory_bytes'] / MIB:,.0f}")


def test_a_measured_length_tells_its_tokens_per_second_with_the_interval() -> None:
    measured = {128: Measured(7, "NVIDIA A10", 99, (98.0, 100.0, 102.0))}
    rows = shown_of(stored_frontier(64, 128), measured)["rows"]
    assert (rows[1]["run_id"], rows[1]["speed"]) == (7, "12,800 [12,544 to 13,056]")
    assert rows[0]["speed"] == ""


def test_a_speed_that_was_not_measurable_is_not_shown() -> None:
    row = shown_of(stored_frontier(64, 128), {64: Measured(7, "NVIDIA A10", 99, None)})["rows"][0]
    assert (row["run_id"], row["speed"]) == (7, "")


def test_an_image_of_twice_the_side_counts_four_times_the_pixels() -> None:
    stored = stored_frontier(64, 128, model_id="resnet18")
    measured = {size: Measured(7, "NVIDIA A10", 99, (10.0, 10.0, 10.0)) for size in (64, 128)}
    shown = shown_of(stored, measured)
    assert (shown["heading"], shown["made"].unit) == ("Image size", "pixels")
    assert [row["speed"].split()[0] for row in shown["rows"]] == ["40,960", "163,840"]


def test_the_picture_has_a_point_for_each_length_in_both_lines() -> None:
    stored = stored_frontier(64, 128, 256)
    plot = frontier_plot(StoredFrontier.from_dict(stored))
    assert plot is not None
    assert [trace.name for trace in plot.traces] == ["Largest", "With margin"]
    assert [(dot.x, dot.y) for dot in plot.traces[1].dots] == [
        (row["input_size"], row["safe_batch_size"]) for row in stored["rows"]
    ]
    assert plot.kinds == "estimated"


def test_there_is_no_picture_of_a_single_length_that_fits() -> None:
    stored = stored_frontier(64, 128)
    stored["rows"][1]["safe_batch_size"] = 0
    assert frontier_plot(StoredFrontier.from_dict(stored)) is None
    assert shown_of(stored, {})["rows"][1]["safe"] == "none"


def test_a_length_at_which_the_search_stopped_is_labelled() -> None:
    stored = stored_frontier(64, 128)
    stored["rows"] = [dict(row) for row in stored["rows"]]
    stored["rows"][0] |= {"limits": "max_batch_size", "largest_batch_size": 65_536, "safe_batch_size": 65_536}
    assert shown_of(stored, {})["rows"][0]["safe"] == "65,536 or more"
