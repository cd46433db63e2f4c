"""The engine's result in the classic contract's words."""

from datetime import UTC, datetime

import pytest

from analysis.api.classic.data import analysis_data, health_data, models_data
from analysis.models import Device
from engine import __version__
from engine.facts.result import Purpose, Savings
from engine.text.units import GIB, MIB
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit
from tests.factories.speeds import make_bound_result

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_a_result_is_told_in_the_contracts_words():
    assert analysis_data(make_result().to_dict(), run_id=7) == {
        "run_id": 7,
        "model_name": "bert-tiny",
        "device": "cpu",
        "gpu_total_gb": 1.0,
        "results": [
            {"batch_size": 4, **memory(400 * MIB, 400.0, 0.4), "success": True, "error": None},
            {"batch_size": 8, **memory(800 * MIB, 800.0, 0.8), "success": True, "error": None},
            {"batch_size": 9, **memory(None, None, None), "success": False, "error": "over the limit"},
        ],
        "optimal_batch_size": 8,
        "optimal_memory_gb": 0.8,
        "current_batch_size": 4,
        "current_memory_gb": 0.4,
        "waste_gb": 0.2,
        "waste_percent": 21.9,
        "current_waste_gb": 0.6,
        "current_waste_percent": 60.9,
        "speedup": 2.0,
        "batch_size_ratio": 2.0,
        "cost_savings_per_run": 0.6,
        "cost_savings_annual": 60.0,
        "certified": True,
        "exact": {
            "capacity_bytes": GIB,
            "recommended_memory_bytes": 800 * MIB,
            "current_memory_bytes": 400 * MIB,
            "waste_bytes": 224 * MIB,
            "waste_fraction": 0.21875,
            "current_waste_bytes": 624 * MIB,
            "current_waste_fraction": 0.609375,
            "speedup": 2.0,
            "speedup_low": None,
            "speedup_high": None,
            "batch_size_ratio": 2.0,
            "saving_per_run_usd": 0.6,
            "saving_per_year_usd": 60.0,
            "saving_per_run_usd_low": None,
            "saving_per_year_usd_low": None,
        },
    }


def test_a_lower_bound_is_no_figure_and_stands_under_exact():
    data = analysis_data(make_bound_result().to_dict(), run_id=7)
    assert (data["optimal_batch_size"], data["speedup"], data["cost_savings_per_run"]) == (8, None, None)
    exact = data["exact"]
    assert (exact["speedup_low"], exact["saving_per_year_usd_low"]) == (2.0, pytest.approx(60.0))


def memory(size_bytes: int | None, mib: float | None, gib: float | None) -> dict[str, float | None]:
    return {"memory_bytes": size_bytes, "memory_mb": mib, "memory_gb": gib}


def test_figures_are_rounded_for_clients_that_print_them_as_they_come():
    result = make_result(speedup=2.4871, savings=Savings(0.6, 2.0, 100, 1.2, 0.71752, 71.752)).to_dict()
    data = analysis_data(result, run_id=1)
    assert (data["speedup"], data["cost_savings_per_run"], data["cost_savings_annual"]) == (2.5, 0.72, 71.75)
    assert (data["exact"]["speedup"], data["exact"]["saving_per_year_usd"]) == (2.4871, 71.752)


def test_what_was_not_measured_is_null_and_never_zero():
    data = analysis_data(make_result_that_does_not_fit().to_dict(), run_id=7)
    unknown = {name for name, value in data.items() if value is None}
    assert unknown == {
        "optimal_batch_size",
        "optimal_memory_gb",
        "current_memory_gb",
        "waste_gb",
        "waste_percent",
        "current_waste_gb",
        "current_waste_percent",
        "speedup",
        "batch_size_ratio",
        "cost_savings_per_run",
        "cost_savings_annual",
    }
    assert [size["success"] for size in data["results"]] == [False]


def test_reserved_memory_is_what_a_training_took_where_it_is_known():
    probe = make_probe(2, peak_reserved_bytes=GIB)
    [size] = analysis_data(make_result(probes=(probe,)).to_dict(), run_id=1)["results"]
    assert (size["memory_gb"], size["memory_mb"]) == (1.0, 1024.0)


@pytest.mark.parametrize(
    ("probes", "told"),
    [
        (
            [make_probe(8), make_probe(1), make_probe(8, purpose=Purpose.SOAK, step_seconds=None)],
            [(1, True), (8, True)],
        ),
        ([make_probe(8), make_refusal(8, purpose=Purpose.SOAK, fresh_process=True)], [(8, False)]),
        ([make_refusal(8), make_probe(8, purpose=Purpose.CONFIRM, fresh_process=True)], [(8, True)]),
    ],
    ids=["once and smallest first", "a failed soak is a failure", "a fresh process has the last word"],
)
def test_each_size_is_told_by_its_decisive_probe(probes, told):
    results = analysis_data(make_result(probes=tuple(probes)).to_dict(), run_id=1)["results"]
    assert [(size["batch_size"], size["success"]) for size in results] == told


def test_health_of_a_card():
    card = Device(device="cuda:0", kind="cuda", name="A card", capacity_bytes=80 * GIB)
    assert health_data(card, NOW) == {
        "status": "healthy",
        "version": __version__,
        "gpu_available": True,
        "gpu_name": "A card",
        "gpu_memory_total_gb": 80.0,
        "device": "cuda",
        "gpu_memory_total_bytes": 80 * GIB,
        "timestamp": "2026-11-21T12:00:00.000000Z",
    }


def test_health_of_a_cpu_names_no_gpu():
    health = health_data(Device(device="cpu", kind="cpu", name="A CPU", capacity_bytes=GIB), NOW)
    assert [health[key] for key in ("gpu_available", "gpu_name", "gpu_memory_total_gb", "device")] == [
        False,
        None,
        None,
        "cpu",
    ]


def test_the_three_models_of_the_contract_come_first():
    models = models_data()
    assert [(m["id"], m["huggingface_id"]) for m in models[:3]] == [
        ("bert", "google-bert/bert-base-uncased"),
        ("gpt2", "openai-community/gpt2"),
        ("resnet", "microsoft/resnet-50"),
    ]
    assert {tuple(model) for model in models} == {("id", "name", "description", "type", "task", "huggingface_id")}


def test_types_are_the_contracts_with_our_tasks_beside_them():
    types = {model["id"]: (model["type"], model["task"]) for model in models_data()}
    assert types["bert"] == types["gpt2"] == ("nlp", "text-classification")
    assert types["resnet"] == types["vit_b_16"] == ("vision", "image-classification")
