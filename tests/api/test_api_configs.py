"""A config.json and validations by API: started, listed, cloned; a hostile config, a wrong field are refused."""

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import MatrixCell, Run, State
from analysis.runs import services
from analysis.workers.supervisor import supervise
from tests.engine.settings.catalog.hostile_configs import LLAMA, REFUSED
from tests.factories import make_claimed_run, make_claimed_validation, make_device, make_result, make_run
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db

GIVEN = {"config": LLAMA, "task": "text-generation"}


def start(client: Client, body: Any, path: str = "/api/v1/runs/") -> Any:
    return client.post(path, body, "application/json")


def finished(**changes: Any) -> Run:
    given = {**LLAMA, **changes}
    device = make_device(device=f"cuda:{Run.objects.count()}", kind="cuda", compute_capability="8.0")
    run = make_claimed_run(device, model="config", config=json.dumps(given), task="text-generation")
    supervise(run, command=[*FAKE_ENGINE, "ok"], timeouts=QUICK)
    run.refresh_from_db()
    assert run.state == State.FINISHED, run.error_message
    return run


def test_a_config_stands_in_place_of_a_model_in_measurements_estimates_and_validations(alice_client: Client) -> None:
    make_device()
    bodies = {"/api/v1/runs/": {"device": "cpu"}, "/api/v1/estimates/": {"gpu": "a10"}, "/api/v1/validations/": {}}
    for path, others in bodies.items():
        response = start(
            alice_client, {**GIVEN, **({"device": "cpu"} if "estimates" not in path else {}), **others}, path
        )
        assert response.status_code == 202, response.content
        assert response.json()["model"].startswith("config-")
    assert len(set(Run.objects.values_list("model", flat=True))) == 1
    assert json.loads(Run.objects.first().spec["config"])["model_type"] == "llama"


@pytest.mark.parametrize(
    "name",
    ["huge layers", "NaN", "lists 10,000 deep", "negative width", "layers as text", "auto_map", "1 MB", "a path"],
)
def test_a_hostile_config_is_refused_and_no_run_is_stored(alice_client: Client, name: str) -> None:
    make_device()
    text, _ = REFUSED[name]
    as_text = start(alice_client, {"config": text, "task": "text-generation", "device": "cpu"})
    as_object = start(alice_client, f'{{"config": {text}, "task": "text-generation", "device": "cpu"}}')
    assert as_text.status_code in (400, 413), as_text.content
    assert as_object.status_code in (400, 413), as_object.content
    if as_text.status_code == 400:
        assert [error["pointer"] for error in as_text.json()["errors"]] == ["/config"]
    assert not Run.objects.exists()


def test_what_a_config_needs_is_named(alice_client: Client) -> None:
    make_device()
    for body, field in (
        ({"config": LLAMA}, "task"),
        ({"model": "config"}, "config"),
        ({**GIVEN, "model": "gpt2"}, "model"),
    ):
        response = start(alice_client, {**body, "device": "cpu"})
        assert response.status_code == 400
        assert response.json()["errors"][0]["pointer"] == f"/{field}"


def test_two_configs_are_distinguished_and_pages_name_them(alice_client: Client) -> None:
    first, second = finished(), finished(num_hidden_layers=3)
    assert first.model != second.model
    assert finished().model == first.model
    assert not MatrixCell.objects.exists()
    short = f"config {first.model[7:13]}"
    for address in (
        f"/runs/{first.pk}/",
        "/",
        "/runs/",
        f"/runs/?model={first.model}",
        f"/compare/?ids={first.pk},{second.pk}",
    ):
        response = alice_client.get(address, headers={"accept": "text/html"})
        assert response.status_code == 200, address
        assert short in response.content.decode(), address
    for address in (
        "/matrix/",
        "/trend/",
        "/fleet/",
        "/runs/export.csv",
    ):
        assert alice_client.get(address).status_code == 200, address
    assert start(alice_client, {"ids": [first.pk, second.pk]}, "/api/v1/compare/").status_code == 200
    text = alice_client.get(f"/runs/{first.pk}/").content.decode()
    assert "llama-like" in text
    assert "128 tokens" in text


def test_a_run_of_a_config_is_cloned_and_repeated_with_it(alice_client: Client) -> None:
    run = finished()
    for path, body in ((f"/api/v1/runs/{run.pk}/clone/", {"precision": "bf16"}), (f"/api/v1/runs/{run.pk}/retry/", {})):
        assert start(alice_client, body, path).status_code in (201, 202), path
        assert Run.objects.latest("pk").spec["config"] == run.spec["config"]


def test_a_finished_run_names_the_parameters_that_the_engine_counted(alice_client: Client) -> None:
    run = make_claimed_run(make_device(), model="config", config=json.dumps(LLAMA), task="text-generation")
    counted = {**run.spec, "config_parameters": 202_048}
    services.run_finish(run_id=run.pk, token=run.token, result={**make_result().to_dict(), "spec": counted})
    run.refresh_from_db()
    assert run.spec == counted
    assert "llama-like 0.202 M" in alice_client.get("/runs/").content.decode()
    changed = {"model": "config", "config": {**LLAMA, "num_hidden_layers": 3}}
    assert start(alice_client, changed, f"/api/v1/runs/{run.pk}/clone/").status_code == 202
    assert Run.objects.latest("pk").spec["config_parameters"] is None


PATH = "/api/v1/validations/"


def start_validation(client: Client, **body: Any) -> Any:
    return client.post(PATH, {"model": "bert-tiny", "device": "cpu", **body}, "application/json")


def finished_validation(**fields: Any) -> Run:
    run = make_claimed_validation(**fields)
    supervise(run, command=[*FAKE_ENGINE, "ok"], timeouts=QUICK)
    return run


def test_a_validation_is_queued_and_answers_where_it_is(alice_client: Client) -> None:
    make_device()
    response = start_validation(alice_client, check="compile", memory_limit_bytes="1GiB", gradient_tolerance=0.05)
    assert response.status_code == 202, response.content
    run = Run.objects.get()
    assert response.headers["Location"].endswith(f"/api/v1/runs/{run.pk}/")
    assert (run.kind, run.needs_bytes, run.spec["gradient_tolerance"]) == ("validation", 2**30, 0.05)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"check": "everything"}, "check"),
        ({"kind": "validation"}, "kind"),
        ({"price_per_hour_usd": 1}, "price_per_hour_usd"),
    ],
)
def test_a_wrong_field_is_named(alice_client: Client, wrong: Any, field: str) -> None:
    make_device()
    response = start_validation(alice_client, **wrong)
    assert response.status_code == 400
    assert [error["pointer"] for error in response.json()["errors"]] == [f"/{field}"]


def test_the_list_of_validations_holds_no_other_run_and_a_finished_one_its_verdict(alice_client: Client) -> None:
    run = finished_validation(precision="bf16")
    make_run(make_device("other"))
    (row,) = alice_client.get(PATH).json()["results"]
    assert (row["id"], row["kind"], row["verdict"]) == (run.pk, "validation", "passed")
    detail = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert detail["result"]["verdict_text"].endswith("2 of 2 checks passed.")
    origin = {name: detail[name] for name in ("origin", "reported_from", "is_trusted")}
    assert alice_client.get(f"/api/v1/runs/{run.pk}/result/").json() == {**detail["result"], **origin}
    assert alice_client.get(f"/api/v1/runs/{run.pk}/certificate/").status_code == 404
    assert alice_client.get(f"/api/v1/runs/{run.pk}/points/").json()["curves"][0]["points"] == []


def test_the_address_of_runs_names_the_one_of_validations(alice_client: Client) -> None:
    body = {"kind": "validation", "model": "bert-tiny"}
    response = alice_client.post("/api/v1/runs/", body, "application/json")
    assert response.status_code == 400
    assert "/api/v1/validations/" in response.json()["errors"][0]["detail"]


def test_a_clone_is_a_validation_with_its_changes(alice_client: Client) -> None:
    run = finished_validation(precision="bf16")
    response = alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {"batch_size": 4}, "application/json")
    assert response.status_code in (201, 202), response.content
    spec = Run.objects.latest("pk").spec
    assert (spec["precision"], spec["batch_size"], spec["check"]) == ("bf16", 4, "backward")
