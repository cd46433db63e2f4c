"""A config.json that is pasted into the form: a run or an estimate of it, or an error at its field."""

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from tests.engine.catalog.hostile_configs import LLAMA
from tests.factories import make_device
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def test_a_pasted_config_starts_a_run_of_it(alice_client: Client) -> None:
    given = {"model": "config", "config": json.dumps(LLAMA), "task": "text-generation"}
    response = alice_client.post("/runs/new/", form_data(make_device(), **given))
    run = Run.objects.get()
    assert (response.status_code, response.url) == (302, run.get_absolute_url())
    assert run.model.startswith("config-")
    text = alice_client.get(f"/?from={run.pk}", headers={"accept": "text/html"}).content.decode()
    assert '<option value="config" selected>' in text
    assert "&quot;model_type&quot;:&quot;llama&quot;" in text


def test_an_estimate_of_a_pasted_config_is_queued(alice_client: Client) -> None:
    given = {
        "model": "config",
        "config": json.dumps(LLAMA),
        "task": "text-generation",
        "kind": "estimate",
        "gpu": "a10",
    }
    assert alice_client.post("/runs/new/", form_data(make_device(), **given)).status_code == 302
    assert Run.objects.get().spec["task"] == "text-generation"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"config": "{"}, "is not valid JSON"),
        ({"config": ""}, "is required with the model config"),
        ({"config": json.dumps({**LLAMA, "auto_map": {"a": "b"}})}, "names code outside of transformers"),
        ({"config": "x" * 70_000}, "at most 65536 characters"),
    ],
)
def test_a_config_that_is_refused_is_named_at_its_field(alice_client: Client, given: Any, said: str) -> None:
    values = {"model": "config", "task": "text-generation", **given}
    response = alice_client.post("/runs/new/", form_data(make_device(), **values))
    assert response.status_code == 422
    assert said in response.content.decode().replace("65,536", "65536")
    assert not Run.objects.exists()
