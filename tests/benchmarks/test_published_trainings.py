"""What the benchmarks read: published trainings, each with its source, and recordings that can be made again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import litgpt_model
from benchmarks.time_left import RUNS, read_recordings
from engine.estimate import gpus
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec

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


def test_the_estimates_are_as_near_as_the_goals() -> None:
    """At most 3 % in the median, and nine of ten within 8 %."""
    found = RESULTS["summary"]["transformer"]["any settings"]
    assert found["typical_fraction"] <= 0.03
    assert found["near_fraction"] >= 0.9


def test_trainings_of_litgpt_are_estimated_by_the_models_of_transformers_too() -> None:
    of_litgpt = [row for row in RESULTS["rows"] if row["source"].startswith("litgpt") and "error_fraction" in row]
    assert of_litgpt
    left_out = {row["case"] for row in of_litgpt if "with_transformers_fraction" not in row}
    assert left_out == {row["case"] for row in PUBLISHED["rows"] if "not_in_transformers" in row}


@pytest.mark.parametrize("kind", ["llama", "phi", "gemma2", "falcon"])
def test_a_step_of_the_layers_of_litgpt_trains_its_adapters_alone(kind: str) -> None:
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "multi_query": kind == "falcon"}
    config = {"model_type": kind, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "vocab_size": 32}
    spec = RunSpec("llama-3.2-1b", lora_rank=2, lora_targets="q_proj,v_proj", sequence_length=8, loss_chunk_tokens=4)
    step = litgpt_model.step_maker(spec, {**config, **heads}, 2024)(torch.device("cpu"))
    step(2)
    learned = [name for name, weight in step.built.model.named_parameters() if weight.grad is not None]
    assert learned
    assert all("lora_" in name for name in learned)


RECORDED = {recording["run"]: recording for recording in read_recordings()}


def spec_of(name: str) -> dict[str, Any]:
    return next(event["spec"] for event in RECORDED[name]["events"] if event["event"] == "started")


def test_what_can_be_recorded_is_what_is_recorded() -> None:
    assert set(RUNS) == set(RECORDED)


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("tune-")])
def test_a_tuning_is_recorded_again_with_or_without_its_comparison_of_speeds(name: str) -> None:
    options = RUNS[name].partition(" -- ")[0].split()
    assert ("--no-compare-speed" not in options) == spec_of(name)["compare_speed"]
