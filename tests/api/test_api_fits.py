"""A CI job asks whether its batch size still fits, a script for its batch size before it trains."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.api import waiting
from analysis.models import Device, Run
from analysis.runs import services
from engine.estimate.gpus import gpus
from engine.facts.result import Boundary, DeviceFacts, Reason
from tests.factories import STACK, make_card, make_device, make_measured_run, make_result, make_run

pytestmark = pytest.mark.django_db

PATH = "/api/v1/fits/"
ASKED = {"model": "bert-tiny", "device": "cpu"}


def ask(client: Client, size: Any, *, waits: bool = False, **changes: Any) -> Any:
    headers = {} if waits else {"Prefer": "respond-async"}
    return client.post(PATH, {**ASKED, "batch_size": size, **changes}, "application/json", headers=headers)


def finish_check(run: Run, *, fits: bool) -> None:
    size, device = run.spec["check_batch_size"], run.requested_device
    found = make_result(spec=run.run_spec, environment=STACK, fastest=None, recommended=None)
    facts = DeviceFacts(device.device, device.kind, device.name, device.capacity_bytes)
    services.attempt_set(run_id=run.pk, token=run.token, environment={"device": facts.to_dict(), "environment": STACK})
    boundary = Boundary(size if fits else None, False, None if fits else size, Reason.ONE_SIZE, None, 5)
    result = replace(found, device=facts, boundary=boundary, largest=found.largest if fits else None)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())


def claimed(device: Device) -> Run:
    run = services.run_claim(device=device, owner="worker")
    assert run is not None
    return run


@pytest.fixture
def device() -> Device:
    return make_device()


@pytest.mark.parametrize(
    ("size", "fits", "basis"),
    [(8, True, "measured"), (3, True, "derived"), (9, False, "measured"), (4_000, False, "derived")],
)
def test_a_certified_run_answers_at_once_and_nothing_is_started(alice_client, device, size, fits, basis):
    run = make_measured_run(device)  # eight at most
    answer = ask(alice_client, size)
    body = answer.json()
    assert (answer.status_code, body["run"], body["fits"], body["basis"]) == (200, run.pk, fits, basis)
    assert Run.objects.count() == 1


def test_what_is_not_known_is_measured_by_a_run_of_this_size_alone(alice_client, alice, device):
    answer = ask(alice_client, 8, precision="bf16")
    run, body = Run.objects.get(), answer.json()
    assert (answer.status_code, body["fits"], body["state"], body["run"]) == (202, None, "queued", run.pk)
    assert answer.headers["Location"] == body["url"] == f"http://testserver/api/v1/runs/{run.pk}/"
    assert (run.spec["check_batch_size"], run.requested_by) == (8, alice)


@pytest.mark.parametrize("fits", [True, False])
def test_the_answer_is_waited_for(alice_client, device, monkeypatch, fits):
    monkeypatch.setattr(waiting, "sleep", lambda seconds: finish_check(claimed(device), fits=fits))
    answer = ask(alice_client, 6, waits=True)
    body = answer.json()
    assert (answer.status_code, body["fits"], body["basis"], body["state"]) == (200, fits, "measured", "finished")


def test_a_check_answers_later_ones_as_far_as_it_proves_anything(alice_client, device):
    ask(alice_client, 6)
    finish_check(claimed(device), fits=False)
    assert [ask(alice_client, size).json()["fits"] for size in (6, 7, 5)] == [False, False, None]


def test_whoever_asks_again_joins_the_run_that_is_under_way(alice_client, root_client, device):
    first, again, other = (ask(client, 6).json()["run"] for client in (alice_client, alice_client, root_client))
    assert first == again != other


def test_a_run_that_ends_without_an_answer_says_so(alice_client, device, monkeypatch):
    def fail(seconds: float) -> None:
        run = claimed(device)
        services.run_fail(run_id=run.pk, token=run.token, code="x", message="the loss")

    monkeypatch.setattr(waiting, "sleep", fail)
    body = ask(alice_client, 6, waits=True).json()
    assert (body["fits"], body["state"], body["error_message"]) == (None, "failed", "the loss")


@pytest.mark.parametrize("other", [{"precision": "bf16"}, {"memory_limit_bytes": "2GiB"}, {"sequence_length": 64}])
def test_of_another_setting_nothing_is_taken_over(alice_client, device, other):
    make_measured_run(device)
    assert ask(alice_client, 4, **other).status_code == 202


def test_how_the_limit_was_searched_is_another_matter(alice_client, device):
    make_measured_run(device, max_batch_size=512, reserve_fraction=0.2)
    assert ask(alice_client, 4, current_batch_size=64).json()["fits"] is True


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"batch_size": None}, "batch_size"),
        ({"batch_size": "8"}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 65_537}, "batch_size"),
        ({"check_batch_size": 8}, "check_batch_size"),
        ({"kind": "estimate"}, "kind"),
        ({"precision": "int8"}, "precision"),
    ],
)
def test_what_is_wrong_names_its_field_and_nothing_is_started(alice_client, device, changes, field):
    answer = alice_client.post(PATH, {**ASKED, "batch_size": 8, **changes}, "application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"/{field}")
    assert not Run.objects.exists()


def test_a_card_of_another_class_does_not_answer(alice_client):
    make_measured_run(make_card())
    make_card(1, name="NVIDIA H100 PCIe", capacity_bytes=80 * 1024**3)
    assert ask(alice_client, 4, device="cuda", device_class="A100").json()["fits"] is True
    assert ask(alice_client, 4, device="cuda", device_class="H100").status_code == 202


@pytest.mark.parametrize("fits", [True, False])
def test_the_page_and_the_lists_show_a_check(alice_client, alice: User, device, fits):
    make_run(device, requested_by=alice, check_batch_size=6)
    run = claimed(device)
    finish_check(run, fits=fits)
    page = alice_client.get(f"/runs/{run.pk}/", headers={"accept": "text/html"}).content.decode()
    assert ("Batch 6 fits: it trained" if fits else "Batch 6 does not fit: it ran out of memory") in page
    assert "Time again" not in page
    for path in ("/runs/", "/matrix/", f"/compare/?ids={run.pk},{run.pk}", "/"):
        assert alice_client.get(path, headers={"accept": "text/html"}).status_code < 500


RECOMMENDATION = "/api/v1/recommendation/"
QUESTION = {"model": "bert-tiny", "current_batch_size": 4}


def test_the_newest_equal_measurement_answers(alice_client: Client) -> None:
    card = make_card()
    make_measured_run(card)
    run = make_measured_run(card)
    answer = alice_client.get(RECOMMENDATION, {**QUESTION, "device": "cuda"}).json()
    assert (answer["run"], answer["certified"], answer["device_name"]) == (run.pk, True, card.name)
    assert (answer["recommended_batch_size"], answer["largest_batch_size"]) == (8, 8)
    assert answer["recommended_samples_per_second"] == 16.0
    assert 0 <= answer["age_seconds"] < 60


def test_a_run_on_a_cpu_answers_for_the_cpu(alice_client: Client) -> None:
    run = make_measured_run(make_device())
    assert alice_client.get(RECOMMENDATION, {**QUESTION, "device": "cpu"}).json()["run"] == run.pk


def test_a_card_of_the_catalogue_stands_for_all_of_its_class_here(alice_client: Client) -> None:
    known = gpus()["a100-80gb"]
    run = make_measured_run(make_card(name=known.torch_names[0], capacity_bytes=known.total_bytes))
    assert alice_client.get(RECOMMENDATION, {**QUESTION, "gpu": "a100-80gb"}).json()["run"] == run.pk
    assert alice_client.get(RECOMMENDATION, {**QUESTION, "gpu": "a10"}).status_code == 404


@pytest.mark.parametrize(
    "other",
    [
        {"precision": "bf16"},
        {"gradient_checkpointing": "true"},
        {"reserve_fraction": "0.1"},
    ],
)
def test_of_another_question_there_is_no_answer_yet(alice_client: Client, other: dict[str, str]) -> None:
    make_measured_run(make_card())
    answer = alice_client.get(RECOMMENDATION, {**QUESTION, **other})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_measured")
    assert "POST /api/v1/runs/" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"model": ""}, "model"),
        ({"model": "bart"}, "model"),
        ({"precision": "int8"}, "precision"),
        ({"gradient_checkpointing": "perhaps"}, "gradient_checkpointing"),
        ({"max_batch_size": "many"}, "max_batch_size"),
        ({"device": "cuda:7"}, "device"),
        ({"gpu": "voodoo-2"}, "gpu"),
        ({"gpu": "a10", "device": "cuda"}, "gpu"),
        ({"time_budget_seconds": "60"}, "time_budget_seconds"),
    ],
)
def test_what_is_not_allowed_is_refused_by_its_parameter(
    alice_client: Client, values: dict[str, str], name: str
) -> None:
    make_card()
    answer = alice_client.get(RECOMMENDATION, {**QUESTION, **values})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, name)


def test_a_card_that_others_may_use_alone_is_not_asked(alice_client: Client, root) -> None:
    card = make_card()
    make_measured_run(card)
    card.allowed_users.add(root)
    assert alice_client.get(RECOMMENDATION, QUESTION).status_code == 400
