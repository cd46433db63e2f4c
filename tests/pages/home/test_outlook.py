"""The line under the button: what earlier runs say of the run that the form describes, and who waits."""

import datetime as dt
import os
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.models import Device, MatrixCell, Run
from analysis.pages.home.outlook import warn_of_load
from engine.text.units import GIB
from tests.factories import make_card, make_claimed_run, make_device, make_estimate, make_measured_run, make_run
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def said(client: Client, device: Any, **values: Any) -> str:
    answer = client.post("/runs/outlook/", form_data(device, **{"current_batch_size": "4", **values}))
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def took(run: Run, seconds: float) -> Run:
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(started_at=now - dt.timedelta(seconds=seconds), finished_at=now)
    return run


def test_what_was_measured_with_these_settings_is_said_with_its_time(alice_client: Client) -> None:
    card = make_card()
    run = took(make_measured_run(card), 50)
    assert said(alice_client, card) == f"Up to 8 trained in run {run.pk} . Takes about 50 s. No run waits."


def test_of_other_settings_only_the_usual_time_is_said(alice_client: Client) -> None:
    card = make_card()
    took(make_measured_run(card), 50)
    assert said(alice_client, card, optimizer="sgd") == "Recent runs took about 50 s. No run waits."
    assert said(alice_client, card, memory_limit_bytes="8GiB") == "Recent runs took about 50 s. No run waits."
    assert said(alice_client, card, model="gpt2") == "Recent runs took about 50 s. No run waits."


AT_MOST = "Takes at most 30 min, its time budget."


def test_where_nothing_ended_yet_its_time_budget_is_the_most(alice_client: Client) -> None:
    assert said(alice_client, make_card()) == f"{AT_MOST} No run waits."
    assert "Takes at most 2 min," in said(alice_client, make_card(1), time_budget_seconds="120")


def test_no_run_is_said_to_take_longer_than_its_budget(alice_client: Client) -> None:
    card = make_card()
    took(make_measured_run(card), 500)
    assert "Takes about 2 min." in said(alice_client, card, time_budget_seconds="120")


def test_an_estimate_for_the_card_is_named_as_one(alice_client: Client) -> None:
    card, run = make_card(capacity_bytes=80 * GIB), make_estimate("a100-80gb")
    MatrixCell.objects.create(
        run=run,
        answered_at=timezone.now(),
        kind="estimated",
        card="a100-80gb",
        card_name="A100",
        memory_bytes=80 * GIB,
        model="bert-tiny",
        input_size=128,
        precision="fp32",
        optimizer="adamw",
        settings="",
        largest_batch_size=60,
    )
    assert said(alice_client, card) == f"About 60 will fit, by the estimate of run {run.pk} . {AT_MOST} No run waits."
    assert said(alice_client, card, memory_limit_bytes="8GiB") == f"{AT_MOST} No run waits."


def test_a_cpu_without_a_limit_is_known_by_the_limit_that_it_then_has(alice_client: Client) -> None:
    device = make_device(last_seen_at=timezone.now())
    run = took(make_measured_run(device, memory_limit_bytes=4 * GIB), 50)
    assert f"trained in run {run.pk}" in said(alice_client, device)
    assert "trained in" not in said(alice_client, device, memory_limit_bytes="2GiB")


def test_it_says_who_is_first(alice: Any, alice_client: Client) -> None:
    card = make_card()
    running = make_claimed_run(card)
    assert said(alice_client, card) == f"{AT_MOST} Starts when run {running.pk} has ended."
    make_run(card, requested_by=alice)
    assert said(alice_client, card) == f"{AT_MOST} 1 run waits before it."


def test_a_device_that_another_program_holds_is_not_free(alice_client: Client) -> None:
    card = make_card(held_process="process 546 on vm", held_work="python -m engine bert-tiny cpu")
    assert said(alice_client, card).endswith("python -m engine bert-tiny cpu (process 546 on vm) has ended.")


def test_without_a_living_worker_it_says_that_the_run_waits(alice_client: Client) -> None:
    card = make_card(last_seen_at=timezone.now() - dt.timedelta(minutes=2))
    assert said(alice_client, card).endswith("No worker is up: the run waits until one is.")


@pytest.mark.parametrize("wrong", [{"memory_limit_bytes": "lots"}, {"model": "llama"}, {"kind": "estimate"}])
def test_of_a_form_with_errors_and_of_an_estimate_nothing_is_said(alice_client: Client, wrong: Any) -> None:
    assert said(alice_client, make_card(), **wrong) == ""


def test_it_reads_columns_alone_with_as_many_queries_however_many_runs(alice_client: Client) -> None:
    card, counts = make_card(), []
    for _ in range(2):
        make_measured_run(card)
        with CaptureQueriesContext(connection) as queries:
            said(alice_client, card)
        counts.append(len(queries))
        assert all('"analysis_run"."result"' not in query["sql"] for query in queries)
    assert counts[0] == counts[1]


def test_a_load_beside_a_comparison_is_told_before_it_starts(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = make_device(settings.HOST_NAME)
    seen = list(Device.objects.filter(pk=device.pk).with_activity())
    for load, told in ((0.01, ""), (9e9, "which is faster may show, by how much will not.")):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        assert warn_of_load(seen).endswith(told)
        assert bool(warn_of_load(seen)) is bool(told)
    assert warn_of_load([]) == ""
