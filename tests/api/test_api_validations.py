"""Validations by API: started, listed, read, cloned; a wrong field is named."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from analysis.workers.supervisor import supervise
from tests.factories import make_claimed_validation, make_device, make_run
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db
PATH = "/api/v1/validations/"


def start(client: Client, **body: Any) -> Any:
    return client.post(PATH, {"model": "bert-tiny", "device": "cpu", **body}, "application/json")


def finished(**fields: Any) -> Run:
    run = make_claimed_validation(**fields)
    supervise(run, command=[*FAKE_ENGINE, "ok"], timeouts=QUICK)
    return run


def test_a_validation_is_queued_and_answers_where_it_is(alice_client: Client) -> None:
    make_device()
    response = start(alice_client, check="compile", memory_limit_bytes="1GiB", gradient_tolerance=0.05)
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
    response = start(alice_client, **wrong)
    assert response.status_code == 400
    assert [error["pointer"] for error in response.json()["errors"]] == [f"/{field}"]


def test_the_list_of_validations_holds_no_other_run_and_a_finished_one_its_verdict(alice_client: Client) -> None:
    run = finished(precision="bf16")
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
    run = finished(precision="bf16")
    response = alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {"batch_size": 4}, "application/json")
    assert response.status_code in (201, 202), response.content
    spec = Run.objects.latest("pk").spec
    assert (spec["precision"], spec["batch_size"], spec["check"]) == ("bf16", 4, "backward")
