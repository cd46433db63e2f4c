"""A device that another program holds is busy wherever it is shown, and what waits for it says for whom."""

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Device, Run
from analysis.runs.queue.forecast import queue_positions
from analysis.workers.device_discovery import devices_refresh
from analysis.workers.device_lock import device_lock, lock_path
from analysis.workers.health import run_left_lying
from engine.machine.device_lock import sign
from tests.engine.machine.test_device_holder import HOLD, ROOT
from tests.factories import make_card, make_claimed_run, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def card() -> Device:
    return make_card(0)


@contextmanager
def held_by_a_command(device: Device) -> Iterator[int]:
    """Hold the device by a process of its own; its worker has looked meanwhile."""
    command = [sys.executable, "-c", HOLD, str(lock_path(device))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        devices_refresh([device])
        yield holder.pid
        holder.communicate("\n")


def words(client: Client, address: str) -> str:
    answer = client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def test_the_pages_name_the_holder_and_call_no_held_device_idle(card: Device, alice_client: Client) -> None:
    with held_by_a_command(card) as pid:
        run = make_run(card)
        held = rf"held by python -m engine bert-tiny cpu \(process {pid} on .+?\) since \d\d:\d\d UTC"
        fleet, start, page = (words(alice_client, path) for path in ("/fleet/", "/", f"/runs/{run.pk}/"))
    assert "● idle" not in fleet + start
    assert re.search(rf"◐ busy .*{held}", fleet)
    assert re.search(rf"◐ busy.*{held}", start)
    assert re.search(rf"Waiting: next, when cuda:0 of lab is free: it is {held}\.", page)
    assert "expected now" not in page


def test_programs_are_told_the_holder(card: Device, alice_client: Client) -> None:
    with held_by_a_command(card) as pid:
        run = make_run(card)
        answers = [alice_client.get(f"/api/v1/runs/{run.pk}/").json()]
        answers += alice_client.get("/api/v1/runs/").json()["results"]
        device = alice_client.get(f"/api/v1/devices/{card.pk}/").json()
    for answer in (*answers, device):
        assert answer["held_by"].startswith(f"python -m engine bert-tiny cpu (process {pid} on ")
        assert answer["held_since"].endswith("Z")
    assert [(answer["queue_position"], answer["expected_start_at"]) for answer in answers] == [(1, None)] * 2
    assert len(answers) == 2


def test_monitoring_names_the_process_and_the_run_but_shows_nobody_a_command_line(card: Device, client: Client) -> None:
    with held_by_a_command(card) as pid:
        run = make_run(card)
        Run.objects.update(created_at=timezone.now() - timedelta(hours=1))
        answer = client.get("/readyz")
        assert run_left_lying() is None
    message = answer.json()["checks"]["queue"]["message"]
    assert answer.status_code == 200
    assert re.fullmatch(
        rf"Run {run.pk} waits for cuda:0 of lab, which process {pid} on .+ holds since .+ UTC\.", message
    )
    assert "bert-tiny" not in answer.content.decode()


def test_a_metric_counts_held_devices(card: Device, root_client: Client) -> None:
    line = 'memorymark_device_held{device="cuda:0",host="lab",uuid=""}'
    with held_by_a_command(card):
        assert f"{line} 1.0" in root_client.get("/metrics").content.decode()
    devices_refresh([card])
    assert f"{line} 0.0" in root_client.get("/metrics").content.decode()


def test_a_device_that_was_released_is_idle_again(card: Device, alice_client: Client) -> None:
    with held_by_a_command(card):
        pass
    devices_refresh([card])
    assert "● idle" in words(alice_client, "/fleet/")


def test_a_worker_that_looks_at_the_queue_is_no_holder(card: Device) -> None:
    with device_lock(card):
        devices_refresh([card])
    card.refresh_from_db()
    assert not card.is_held


def test_a_run_of_this_portal_is_named_by_its_number(card: Device, alice_client: Client) -> None:
    running, waiting = make_claimed_run(card), make_run(card)
    with device_lock(card) as descriptor:
        sign(descriptor, f"run {running.pk} of the portal")
        devices_refresh([card])
    card.refresh_from_db()
    assert not card.is_held
    assert queue_positions([waiting])[waiting.pk].after_run == running.pk
    page = words(alice_client, f"/runs/{waiting.pk}/")
    assert f"Waiting: next, after run {running.pk}. See run {running.pk}" in page
    assert alice_client.get(f"/api/v1/runs/{waiting.pk}/").json()["after_run"] == running.pk


def test_another_device_that_is_free_is_taken_first(card: Device) -> None:
    make_card(1)
    run = make_run(card)
    Run.objects.update(requested_device=None, requested_kind="cuda")
    with held_by_a_command(card):
        turn = queue_positions([run])[run.pk]
    assert turn.held is None
    assert turn.start_at is not None


def test_a_run_is_expected_to_take_no_longer_than_its_own_budget(card: Device) -> None:
    done = make_claimed_run(card)
    now = timezone.now()
    Run.objects.update(state="finished", started_at=now - timedelta(hours=1), finished_at=now)
    first, second = make_run(card, time_budget_seconds=150.0), make_run(card)
    turns = queue_positions([first, second])
    assert done.pk not in turns
    assert (turns[second.pk].start_at - turns[first.pk].start_at).total_seconds() == pytest.approx(150.0)


def test_a_run_that_takes_longer_than_expected_is_not_said_to_end_now(card: Device) -> None:
    running, waiting = make_claimed_run(card, time_budget_seconds=60.0), make_run(card)
    now = timezone.now()
    done = make_run(card)
    Run.objects.filter(pk=done.pk).update(state="finished", started_at=now - timedelta(hours=1), finished_at=now)
    Run.objects.filter(pk=running.pk).update(started_at=now - timedelta(seconds=90))
    turn = queue_positions([waiting])[waiting.pk]
    assert (turn.start_at, turn.after_run) == (None, running.pk)
