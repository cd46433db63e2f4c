"""The schemas of a run's spec and result are what the API serves, no more and no less."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from analysis.api import openapi
from analysis.api.result_schema import ORIGIN, RESULT, component, engine_components
from analysis.models import Run
from engine.estimate.gpus import Gpu
from engine.estimate.predict import estimate
from engine.facts.result import EstimateError, RunResult
from engine.settings.spec import RunSpec
from tests.engine.estimate.synthetic_models import card, model
from tests.engine.questions.answers.answers import originals
from tests.engine.questions.answers.own_race_documents import document_of
from tests.factories import make_claimed_run, make_result, make_result_that_does_not_fit
from tests.factories.matrix import estimated
from tests.factories.results import finished, result
from tests.factories.speeds import make_timed_result, make_unmeasurable_result
from tests.factories.watched import make_watched, make_watched_on_cpu

FULL = replace(make_timed_result(), estimate={"gpu": {}}, estimate_error=EstimateError(0.01, None))
RESULTS = {
    "plain": make_result(),
    "does not fit": make_result_that_does_not_fit(),
    "timed": make_timed_result(),
    "not measurable": make_unmeasurable_result(),
    "of a card": result(20),
    "full": FULL,
}


def strict() -> dict[str, Any]:
    """The components with nothing allowed that they do not name."""
    components = copy.deepcopy(engine_components())
    for schema in components.values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return components


def errors(schema: dict[str, Any], data: Any) -> list[str]:
    validator = Draft202012Validator({**schema, "components": {"schemas": strict()}})
    return [
        f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(json.loads(json.dumps(data)))
    ]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_of_its_schema_and_holds_nothing_else(name: str) -> None:
    assert errors(component("RunResult"), RESULTS[name].to_dict()) == []


@pytest.mark.parametrize("name", ["bert_tiny", "does_not_fit", "resnet"])
def test_a_real_result_is_of_its_schema_and_holds_nothing_else(name: str) -> None:
    document = originals()[name]
    assert bool(document["speed_rounds"]) is (name != "does_not_fit")
    assert errors(component("RunResult"), document) == []


@pytest.mark.parametrize("name", ["workers first", "losses that differ together", "other programs", "no time to try"])
def test_a_race_of_a_script_is_of_its_schema_and_holds_nothing_else(name: str) -> None:
    document = document_of(name)
    assert errors(component("OwnRaceResult"), document) == []
    assert errors(RESULT, document) == []


def test_a_watch_is_of_its_schema_and_holds_nothing_else() -> None:
    for found in (make_watched(error="CUDA out of memory"), make_watched_on_cpu()):
        assert errors(component("WatchResult"), found.to_dict()) == []
        assert errors(RESULT, found.to_dict()) == []


def test_a_result_of_before_0_5_is_of_the_schema() -> None:
    data = make_result().to_dict()
    for name in ("speed", "speedup_low", "speedup_high", "kinds", "fits"):
        del data[name]
    del data["spec"]["reserve_fraction"]
    assert errors(RESULT, data) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("boundary", "reason"), "luck"),
        (("boundary", "certified"), None),
        (("probes", 0, "batch_size"), "8"),
        (("device", "is_shared"), "no"),
        (("spec", "precision"), "fp7"),
        (("spec", "memory_limit_bytes"), "24GiB"),
        (("colour",), "red"),
    ],
)
def test_what_is_no_result_is_refused_at_its_place(path: tuple[Any, ...], value: Any) -> None:
    data = json.loads(json.dumps(make_result().to_dict()))
    part = data
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    [error] = errors(component("RunResult"), data)
    assert str(path[-1]) in error


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (RunResult, FULL.to_dict()),
        (RunSpec, FULL.spec.to_dict()),
        *((type(part), part) for part in (FULL.boundary, FULL.waste, FULL.savings, FULL.timings, FULL.speed)),
    ],
)
def test_every_member_that_is_described_is_served(kind: type, made: Any) -> None:
    served = made if isinstance(made, dict) else dict.fromkeys(made.__dataclass_fields__)
    added = ORIGIN if kind is RunResult else {}  # by result/, where the result is answered without its run
    assert set(engine_components()[f"Engine{kind.__name__}"]["properties"]) == {*served, *added}


@pytest.mark.django_db
def test_what_the_api_serves_of_a_run_is_of_the_schemas(alice_client: Client) -> None:
    measured, predicted, waiting = finished(make_timed_result()), estimated("a10"), make_claimed_run()
    for run, spec in ((measured, "RunSpec"), (predicted, "EstimateSpec"), (waiting, "RunSpec")):
        served = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
        assert errors(component(spec), served["spec"]) == []
    assert errors(component("RunResult"), alice_client.get(f"/api/v1/runs/{measured.pk}/result/").json()) == []
    assert served["result"] is None
    assert Run.objects.get(pk=predicted.pk).result


@pytest.mark.parametrize("gpu", [None, card()])
def test_an_estimate_that_the_engine_makes_is_of_the_schema(gpu: Gpu | None) -> None:
    made = estimate(RunSpec("bert-tiny"), gpu, model(), seconds=1.5, versions={"torch": "2.13.0"})
    assert errors(RESULT, {"estimates": [made.to_dict()]}) == []
    assert set(engine_components()["EngineEstimate"]["properties"]) == set(made.to_dict())


def test_the_document_refers_to_them() -> None:
    schemas = openapi.schema()["components"]["schemas"]
    detail = schemas["RunDetail"]["properties"]
    assert component("RunSpec") in detail["spec"]["anyOf"]
    assert {"type": "null"} in detail["result"]["oneOf"]
    assert schemas.keys() >= engine_components().keys()
