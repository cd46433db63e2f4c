"""The published trainings that estimates are compared with: every row says where it is from and what it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.catalog import WORKLOADS
from engine.estimate import gpus

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED: dict[str, Any] = json.loads((ROOT / "benchmarks/data/published_trainings.json").read_text())
RESULTS: dict[str, Any] = json.loads((ROOT / "benchmarks/results/published_trainings.json").read_text())
FIGURES = {"allocated", "reserved", "device"}


@pytest.mark.parametrize("source", PUBLISHED["sources"].values(), ids=PUBLISHED["sources"])
def test_a_source_says_where_it_is_what_it_says_and_what_it_counts(source: dict[str, Any]) -> None:
    assert source["address"].startswith("https://")
    assert source["says"]
    assert source["library"]
    assert source["figure"] in FIGURES
    assert gpus.find(source["gpu"])


def test_a_row_is_of_a_source_and_of_a_model_that_is_known() -> None:
    for row in PUBLISHED["rows"]:
        assert row["source"] in PUBLISHED["sources"]
        assert row["model"] in {None, *WORKLOADS, *PUBLISHED["configs"]}
        assert row["measured"] > 0
    keys = [(row["source"], row["case"]) for row in PUBLISHED["rows"]]
    assert len(keys) == len(set(keys))


def test_at_least_forty_rows_count_and_the_others_say_why_not() -> None:
    scored = [row for row in RESULTS["rows"] if row["not_scored_because"] is None]
    assert len(scored) >= 40
    assert all(abs(row["error_fraction"]) < 1 for row in scored)
    kinds = {row["not_scored_because"].partition(":")[0] for row in RESULTS["rows"] if row["not_scored_because"]}
    assert kinds <= {"contradictory", "under-stated", "not yet expressible"}


def test_a_row_that_is_far_off_is_explained() -> None:
    far = [row for row in RESULTS["rows"] if row["not_scored_because"] is None and abs(row["error_fraction"]) > 0.08]
    assert all(row["explanation"] for row in far)


def test_every_row_of_the_data_is_in_the_results() -> None:
    names = [{(row["source"], row["case"]) for row in each["rows"]} for each in (PUBLISHED, RESULTS)]
    assert names[0] == names[1]
