"""The recordings of benchmarks/time_left.py can be made again: each has its options, and they request the same run."""

from typing import Any

import pytest

from benchmarks.time_left import RUNS, read_recordings

RECORDED = {recording["run"]: recording for recording in read_recordings()}


def spec_of(name: str) -> dict[str, Any]:
    return next(event["spec"] for event in RECORDED[name]["events"] if event["event"] == "started")


def test_what_can_be_recorded_is_what_is_recorded() -> None:
    assert set(RUNS) == set(RECORDED)


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("tune-")])
def test_a_tuning_is_recorded_again_with_or_without_its_comparison_of_speeds(name: str) -> None:
    options = RUNS[name].partition(" -- ")[0].split()
    assert ("--no-compare-speed" not in options) == spec_of(name)["compare_speed"]
