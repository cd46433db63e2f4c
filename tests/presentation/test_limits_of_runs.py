"""The memory limit of a run stands wherever the run does: two runs that differ in it alone are told apart."""

import re

import pytest
from django.test import Client

from analysis.models import Run
from analysis.presentation.labels import limit_of_run, name_of_run
from analysis.runs import services
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES
from engine.text.units import GIB, MIB
from tests.factories import make_card, make_claimed_run, make_device, make_estimate, make_measured_run, make_run

pytestmark = pytest.mark.django_db


def words(client: Client, address: str) -> str:
    response = client.get(address, headers={"accept": "text/html"})
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_a_requested_limit_is_the_limit_in_every_state() -> None:
    for run in (make_run(make_card(0), memory_limit_bytes=GIB), make_estimate(memory_limit_bytes=GIB)):
        assert (limit_of_run(run), name_of_run(run)) == (GIB, "BERT tiny, limited to 1 GiB")


def test_a_whole_card_has_no_limit() -> None:
    finished = make_measured_run(make_card(0))
    Run.objects.filter(pk=finished.pk).update(limit_bytes=finished.capacity_bytes)
    assert limit_of_run(Run.objects.get(pk=finished.pk)) is None
    assert limit_of_run(make_run(make_card(1))) is None


def test_a_cpu_without_a_requested_limit_has_the_engines_default() -> None:
    assert limit_of_run(make_run(make_device())) == CPU_DEFAULT_LIMIT_BYTES
    assert limit_of_run(make_estimate()) is None


def test_the_limit_stands_in_recent_runs_in_the_history_and_on_the_runs_page(alice_client: Client) -> None:
    run = make_run(make_device(), memory_limit_bytes=95 * MIB)
    for address in ("/", "/runs/", run.get_absolute_url()):
        assert "limited to 95 MiB" in words(alice_client, address), address


def test_the_limit_stands_in_the_queue_and_on_the_fleet_page(alice: object, alice_client: Client) -> None:
    card = make_card(0)
    make_claimed_run(card, memory_limit_bytes=3 * GIB)
    make_run(card, requested_by=alice, memory_limit_bytes=2 * GIB)
    assert "BERT tiny, limited to 2 GiB on" in words(alice_client, "/devices/")
    fleet = words(alice_client, "/fleet/")
    assert "BERT tiny, limited to 3 GiB" in fleet
    assert "BERT tiny, limited to 2 GiB waits" in fleet


def test_runs_are_found_by_a_limit_as_people_write_it(alice_client: Client) -> None:
    card = make_card(0)
    make_run(card, memory_limit_bytes=2 * GIB)
    make_run(card, memory_limit_bytes=3 * GIB)
    for written in ("3GiB", str(3 * GIB)):
        text = words(alice_client, f"/runs/?memory_limit_bytes={written}")
        assert ("limited to 3 GiB" in text, "limited to 2 GiB" in text) == (True, False)


def test_a_limit_that_is_no_size_is_refused_with_an_example(alice_client: Client) -> None:
    response = alice_client.get("/runs/?memory_limit_bytes=lots")
    assert response.status_code == 400
    assert "such as 24GiB" in response.content.decode()


def test_a_limit_near_all_memory_of_the_host_is_warned_of(alice_client: Client) -> None:
    device = make_device(capacity_bytes=24 * GIB)
    fields = {"model": "bert-tiny", "precision": "fp32", "optimizer": "adamw", "mode": "train", "device": device.pk}
    sent = {**fields, "current_batch_size": "16", "memory_limit_bytes": "24GB"}
    text = alice_client.post("/runs/new/", sent, follow=True).content.decode()
    assert "The limit of 22.4 GiB is 93.1 % of the memory of this host (24.0 GiB)" in text
    above = alice_client.post("/runs/new/", sent | {"memory_limit_bytes": "25GiB"})
    assert above.status_code == 422
    assert "25.0 GiB is above what" in above.content.decode()
    services.runs_cancel(run_ids=list(Run.objects.values_list("pk", flat=True)))
    quiet = alice_client.post("/runs/new/", sent | {"memory_limit_bytes": "8GiB"}, follow=True)
    assert "of the memory of this host" not in quiet.content.decode()


def test_a_model_that_needs_more_than_the_suggested_limit_is_measured_at_the_default(alice_client: Client) -> None:
    fields = {"model": "bert", "precision": "fp32", "optimizer": "adamw", "mode": "train", "current_batch_size": "16"}
    untouched = {"memory_limit_bytes": "512MiB", "suggested_limit": "512MiB"}
    sent = fields | untouched | {"device": make_device().pk}
    text = alice_client.post("/runs/new/", sent, follow=True).content.decode()
    assert "The suggested limit of 512 MiB is less than BERT base needs, so the limit is 4 GiB." in text
    assert "limited to 4 GiB" in text
