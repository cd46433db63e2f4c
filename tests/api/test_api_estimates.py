"""Estimates have an address of their own, and are runs."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from tests.factories import make_estimate, make_run

pytestmark = pytest.mark.django_db
PATH = "/api/v1/estimates/"


def post(client: Client, body: Any, **headers: str) -> Any:
    return client.post(PATH, body, content_type="application/json", headers=headers)


def test_an_estimate_is_stored_without_saying_the_kind(alice_client: Client) -> None:
    answer = post(alice_client, {"model": "bert", "gpu": "a10"})
    run = Run.objects.get()
    assert (answer.status_code, run.kind, run.gpu) == (202, "estimate", "a10")
    assert answer.headers["Location"] == f"http://testserver/api/v1/runs/{run.pk}/"


def test_an_estimate_of_several_lengths_keeps_them_in_order(alice_client: Client) -> None:
    answer = post(alice_client, {"model": "bert", "gpu": "a10", "frontier": [512, 128, 256]})
    assert (answer.status_code, Run.objects.get().spec["frontier"]) == (202, [128, 256, 512])


def test_a_copy_has_the_lengths_of_the_estimate(alice_client: Client) -> None:
    run = make_estimate("a10", frontier=[64, 128])
    answer = alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {"precision": "bf16"}, content_type="application/json")
    assert (answer.status_code, Run.objects.get(precision="bf16").spec["frontier"]) == (202, [64, 128])


def test_only_estimates_are_listed(alice_client: Client) -> None:
    make_run()
    estimates = [make_estimate("a10"), make_estimate("a10", precision="bf16")]
    listed = alice_client.get(PATH).json()["results"]
    assert [run["id"] for run in listed] == [run.pk for run in reversed(estimates)]
    assert len(alice_client.get(PATH, {"precision": "bf16"}).json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"model": "bert", "kind": "measurement"}, "/kind"),
        ({"model": "bert", "device": "cuda"}, "/device"),
    ],
)
def test_what_is_no_estimate_is_refused_by_its_place(alice_client: Client, body: Any, pointer: str) -> None:
    answer = post(alice_client, body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
    assert not Run.objects.exists()


def test_the_kind_is_no_filter_here(alice_client: Client) -> None:
    answer = alice_client.get(PATH, {"kind": "measurement"})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, "kind")
