"""The form that starts a validation, and the pages of one: waiting, live, ended, with its verdict."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Run, State
from analysis.permissions import VIEWER
from analysis.workers.supervisor import supervise
from engine.text.units import MIB
from tests.factories import make_claimed_validation, make_device, make_user, make_validation
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


def start(client: Client, **values: Any) -> Any:
    defaults = {"model": "bert-tiny", "precision": "bf16", "optimizer": "adamw", "mode": "train"}
    return client.post("/validations/new/", {**defaults, "device": make_device().pk, **values})


def ended(mode: str = "ok", **fields: Any) -> Run:
    run = make_claimed_validation(precision="bf16", **fields)
    supervise(run, command=[*FAKE_ENGINE, mode], timeouts=QUICK)
    run.refresh_from_db()
    return run


def text_of(client: Client, address: str) -> str:
    response = client.get(address, headers={"accept": "text/html"})
    assert response.status_code == 200, response.status_code
    return " ".join(response.content.decode().split())


def test_the_form_starts_a_validation_with_its_thresholds(alice_client: Client) -> None:
    response = start(alice_client, check="compile", batch_size="4", gradient_tolerance_percent="3")
    run = Run.objects.get()
    assert (response.status_code, response.url) == (302, run.get_absolute_url())
    assert (run.kind, run.spec["check"], run.spec["batch_size"]) == ("validation", "compile", 4)
    assert run.spec["gradient_tolerance"] == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"batch_size": "0"}, "0 is out of range; from 1 to 4,096"),
        ({"gradient_tolerance_percent": "101"}, "less than or equal to 100"),
        ({"memory_limit_bytes": "much"}, "is not a size"),
        ({"check": "all"}, "Select a valid choice"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_started(alice_client: Client, wrong: Any, said: str) -> None:
    response = start(alice_client, **wrong)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Run.objects.exists()


def test_a_finished_one_leads_with_its_verdict_and_names_each_check(alice_client: Client) -> None:
    run = ended()
    text = text_of(alice_client, run.get_absolute_url())
    assert "BERT tiny, backward pass: 2 of 2 checks passed." in text
    assert "The gradients of bf16 agree with fp32 within 2 %" in text
    assert "they differ by 0.68 %" in text
    assert "Pin as baseline" not in text
    assert f"/compare/?ids={run.pk}" not in text


def test_every_list_shows_it_as_what_it_is(alice_client: Client) -> None:
    run = ended()
    for address in ("/", "/runs/?kind=validation", "/validations/", f"/validations/?from={run.pk}"):
        text = text_of(alice_client, address)
        assert "backward pass, batch 8" in text, address
        assert "passed" in text, address
    assert "backward pass" not in text_of(alice_client, "/runs/?kind=measurement")
    assert f'value="{run.pk}"' not in text_of(alice_client, "/compare/")
    for address in ("/matrix/", "/trend/", "/fleet/", f"/?from={run.pk}", f"/runs/{run.pk}/export.csv"):
        assert alice_client.get(address).status_code == 200, address


@pytest.mark.parametrize("mode", ["error", "crash"])
def test_one_without_a_verdict_says_why_and_how_to_go_on(alice_client: Client, mode: str) -> None:
    run = ended(mode)
    text = text_of(alice_client, run.get_absolute_url())
    if run.state == State.FAILED:
        assert "the validation could not be made" in text
        assert f"/validations/?from={run.pk}" in text
    else:
        assert "Validating BERT tiny" in text


def test_a_live_one_shows_its_steps_and_no_probes(alice_client: Client) -> None:
    run = make_claimed_validation(check="compile")
    Run.objects.update(phase="compiling")
    text = text_of(alice_client, run.get_absolute_url())
    assert "Compiling the training step." in text
    assert "3 of 4" in text
    assert "Peak memory by batch size" not in text


def test_a_viewer_reads_but_does_not_start(client: Client) -> None:
    make_validation(make_device("other"))
    client.force_login(make_user("vera", VIEWER))
    assert 'action="/validations/new/"' not in text_of(client, "/validations/")
    assert start(client).status_code == 403


def test_a_host_with_a_cpu_alone_is_offered_the_limit_of_a_short_run(alice_client: Client) -> None:
    make_device()
    assert 'name="memory_limit_bytes" value="512MiB"' in text_of(alice_client, "/validations/")


@pytest.mark.parametrize(("model", "limit"), [("bert-tiny", 512 * MIB), ("distilbert", None)])
def test_the_limit_that_was_filled_in_is_for_its_own_model_alone(alice_client: Client, model: str, limit: int) -> None:
    response = start(alice_client, model=model, memory_limit_bytes="512MiB", suggested_limit="512MiB")
    assert response.status_code == 302, response.content.decode()
    assert Run.objects.get().spec["memory_limit_bytes"] == limit


def test_a_limit_that_a_person_gave_stays(alice_client: Client) -> None:
    assert start(alice_client, memory_limit_bytes="1GiB", suggested_limit="512MiB").status_code == 302
    assert Run.objects.get().spec["memory_limit_bytes"] == 1024 * MIB
