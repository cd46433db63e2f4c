"""Quotas: whose they are, what they refuse, and what the refusal says."""

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from analysis.accounts.quotas import QuotaExceededError, QuotaLimits, limits_of
from analysis.models import Device, Quota, Run, State
from analysis.permissions import MANAGER
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from tests.factories import make_card, make_device, make_estimate, make_run, make_spec, make_user
from tests.factories.pages import words

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db) -> Device:
    return make_device()


def of_group(person, name: str, *, devices=(), **columns) -> Quota:
    group, _ = Group.objects.get_or_create(name=name)
    person.groups.add(group)
    quota = Quota.objects.create(group=group, **columns)
    quota.devices.set(devices)
    return quota


def own(person, *, devices=(), **columns) -> Quota:
    quota = Quota.objects.create(user=person, **columns)
    quota.devices.set(devices)
    return quota


def test_without_a_row_there_is_no_limit(alice):
    assert limits_of(alice) == QuotaLimits()


def test_a_row_is_of_a_person_or_of_a_group(alice):
    for owners in ({}, {"user": alice, "group": Group.objects.create(name="lab")}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Quota.objects.create(**owners)


def test_among_groups_the_most_generous_value_of_each_field_counts(alice, device):
    of_group(alice, "students", runs_waiting_max=2, runs_per_day_max=9, devices=[device])
    of_group(alice, "vision", runs_waiting_max=5, runs_per_day_max=3, devices=[card := make_card()])
    assert limits_of(alice) == QuotaLimits(5, 9, None, frozenset({device.pk, card.pk}))


def test_a_group_without_a_limit_takes_that_of_another_away(alice, device):
    of_group(alice, "students", runs_waiting_max=2, devices=[device])
    of_group(alice, "vision", runs_per_day_max=3)
    assert limits_of(alice) == QuotaLimits()


def test_a_persons_own_row_stands_in_for_those_of_her_groups(alice):
    of_group(alice, "students", runs_waiting_max=9, time_budget_max_seconds=60)
    own(alice, runs_waiting_max=1)
    assert limits_of(alice) == QuotaLimits(runs_waiting_max=1)


def test_a_gpu_manager_is_bound_by_a_row_of_her_own_alone():
    manager = make_user("m", MANAGER)
    of_group(manager, MANAGER, runs_waiting_max=1)
    assert limits_of(manager) == QuotaLimits()
    own(manager, runs_waiting_max=3)
    assert limits_of(manager).runs_waiting_max == 3


def test_one_run_more_than_may_wait_is_refused_until_one_starts(alice, device):
    own(alice, runs_waiting_max=2)
    first = make_run(device, requested_by=alice)
    make_estimate(requested_by=alice)
    for more in (lambda: make_run(device, requested_by=alice), lambda: make_estimate(requested_by=alice)):
        with pytest.raises(
            QuotaExceededError, match=f"runs waiting is used up: 2 of 2.*run {first.pk} is next"
        ) as refused:
            more()
        assert (refused.value.quota, refused.value.retry_after_seconds) == ("runs_waiting_max", 60)
    assert services.run_claim(device=device, owner="lab:1", run_id=first.pk)
    make_run(device, requested_by=alice)


def test_the_run_of_somebody_else_takes_no_place(alice, device):
    own(alice, runs_waiting_max=1)
    make_run(device, requested_by=make_user("bob"))
    make_run(device)
    run = make_run(device, requested_by=alice)
    assert Run.objects.get(pk=run.pk).state == State.QUEUED


def test_the_day_is_the_last_24_hours_and_the_refusal_says_when_it_frees(alice, device):
    own(alice, runs_per_day_max=2)
    old, oldest, _ = (make_run(device) for _ in range(3))
    now = timezone.now()
    Run.objects.update(requested_by=alice)
    Run.objects.filter(pk=old.pk).update(created_at=now - timedelta(hours=25))
    Run.objects.filter(pk=oldest.pk).update(created_at=now - timedelta(hours=20))
    with pytest.raises(QuotaExceededError) as refused:
        make_run(device, requested_by=alice)
    frees_at = refused.value.frees_at
    assert abs(frees_at - (now + timedelta(hours=4))) < timedelta(seconds=1)
    assert 4 * 3600 - 60 < refused.value.retry_after_seconds <= 4 * 3600
    assert f"is possible at {frees_at:%Y-%m-%d %H:%M} UTC, when your run {oldest.pk} is 24 hours old" in str(
        refused.value
    )


def test_estimates_do_not_count_per_day(alice, device):
    own(alice, runs_per_day_max=1)
    make_estimate(requested_by=alice)
    make_run(device, requested_by=alice)
    make_estimate(requested_by=alice)
    assert Run.objects.filter(requested_by=alice, state=State.QUEUED).count() == 3


def test_a_deleted_run_gives_no_other_one(alice, device):
    own(alice, runs_per_day_max=1)
    run = make_run(device, requested_by=alice)
    services.runs_cancel_by(run_ids={run.pk}, by=alice)
    assert services.runs_delete(run_ids={run.pk}, by=alice).done == 1
    with pytest.raises(QuotaExceededError):
        make_run(device, requested_by=alice)


def test_nought_is_a_limit_too(alice, device):
    own(alice, runs_per_day_max=0)
    with pytest.raises(QuotaExceededError, match="allows no measurements"):
        make_run(device, requested_by=alice)


def test_a_longer_time_budget_is_refused_at_its_field_and_an_estimate_has_none(alice, device):
    own(alice, time_budget_max_seconds=600)
    with pytest.raises(SpecError, match="at most 600") as refused:
        make_run(device, requested_by=alice, time_budget_seconds=601)
    assert refused.value.field == "time_budget_seconds"
    make_run(device, requested_by=alice, time_budget_seconds=600)
    make_estimate(requested_by=alice)


def test_a_device_list_keeps_a_person_off_the_other_devices(alice, device):
    card = make_card()
    own(alice, devices=[device])
    assert list(Device.objects.allowing(alice)) == [device]
    assert set(Device.objects.allowing(make_user("bob"))) == {device, card}
    with pytest.raises(SpecError, match="your quota allows only: Test CPU"):
        make_run(card, requested_by=alice)
    make_run(device, requested_by=alice)


def claimed_by(card: Device) -> Run | None:
    return services.run_claim(device=card, owner="lab:1")


def test_a_run_of_any_card_goes_only_to_a_card_of_the_list(alice):
    mine, other = make_card(0), make_card(1)
    of_group(alice, "students", devices=[mine])
    services.run_create(spec=make_spec(), place=Placement(kind="cuda"), requested_by=alice)
    assert claimed_by(other) is None
    assert claimed_by(mine).requested_by == alice


@pytest.mark.parametrize("opens", ["own row without a list", "another group without a list", "manager"])
def test_a_list_is_lifted_as_the_other_limits_are(alice, opens):
    listed, other = make_card(0), make_card(1)
    of_group(alice, "students", devices=[listed])
    if opens == "own row without a list":
        own(alice, runs_waiting_max=5)
    elif opens == "another group without a list":
        of_group(alice, "vision", runs_waiting_max=5)
    else:
        alice.groups.add(make_user("m", MANAGER).groups.get())
        alice = type(alice).objects.get(pk=alice.pk)
    assert set(Device.objects.allowing(alice)) == {listed, other}
    services.run_create(spec=make_spec(), place=Placement(kind="cuda"), requested_by=alice)
    assert claimed_by(other).requested_by == alice


def test_the_form_says_which_quota_it_is(alice, alice_client, device):
    own(alice, runs_waiting_max=0)
    asked = {"kind": "measurement", "model": "bert-tiny", "device": device.pk, "priority": "0", "mode": "train"}
    more = {"precision": "fp32", "optimizer": "adamw", "current_batch_size": "16", "time_budget_seconds": "60"}
    answer = alice_client.post("/runs/new/", {**asked, **more, "hours_per_run": "2", "runs_per_year": "100"})
    assert answer.status_code == 422
    assert "Your quota of runs waiting is used up: it is 0." in words(answer.content.decode())
    assert not Run.objects.exists()


@pytest.mark.parametrize("path", ["/api/v1/runs/", "/analyze"])
def test_a_program_is_told_to_come_back(alice, device, path):
    own(alice, runs_waiting_max=0)
    client = Client()
    client.force_login(alice)
    body = {"model_name": "bert"} if path == "/analyze" else {"model": "bert-tiny"}
    answer = client.post(path, body, content_type="application/json", headers={"prefer": "respond-async"})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "60"
    assert "runs waiting" in answer.content.decode()


def test_a_retry_counts_as_any_other_run(alice, device):
    own(alice, runs_waiting_max=1)
    over = make_run(device, requested_by=alice)
    services.runs_cancel_by(run_ids={over.pk}, by=alice)
    assert services.runs_retry(run_ids={over.pk}, by=alice).done == 1
    answer = services.runs_retry(run_ids={over.pk}, by=alice)
    assert (answer.done, answer.not_possible) == (0, 1)
    assert "used up: 1 of 1" in answer.reason


def test_the_engines_own_and_local_runs_have_no_quota(device):
    Quota.objects.create(group=Group.objects.create(name="lab"), runs_waiting_max=0)
    assert make_run(device).pk
    assert make_estimate("a10").pk


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_than_the_quota():
    alice, device = make_user("alice"), make_device()
    own(alice, runs_waiting_max=3)
    refused: list[QuotaExceededError] = []
    together = threading.Barrier(6)

    def ask() -> None:
        together.wait(timeout=10)
        try:
            make_run(device, requested_by=alice)
        except QuotaExceededError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (Run.objects.queued().count(), len(refused)) == (3, 3)
