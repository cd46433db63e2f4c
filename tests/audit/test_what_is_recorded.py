"""Who did what, from what to what, and in answer to which request."""

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.test import Client

import analysis
from analysis.audit.actions import ACTIONS
from analysis.audit.context import WorkCause, caused_by
from analysis.audit.record import ENTRY_LENGTH, record
from analysis.models import AuditEntry, Device, Run, SavedView
from analysis.permissions import MANAGER, OPERATOR
from analysis.runs import services
from tests.factories import make_claimed_run, make_device, make_measured_run, make_run, make_user

pytestmark = pytest.mark.django_db


def entry(action: str) -> AuditEntry:
    return AuditEntry.objects.get(action=action)


def test_a_run_that_was_asked_for_is_recorded_with_the_person_and_the_request(alice_client, alice):
    make_device()
    answer = alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, "application/json")
    assert answer.status_code in (201, 202)
    found = entry("run.create")
    assert (found.actor, found.actor_name, found.request_id) == (alice, "alice", answer["X-Request-ID"])
    assert (found.target_kind, found.target_id) == ("run", str(Run.objects.get().pk))
    assert found.after["model"] == "bert-tiny"


def test_a_cancelled_run_is_recorded_once_with_the_state_it_was_in(alice):
    running = make_claimed_run()
    for _ in range(2):
        services.runs_cancel(run_ids=[running.pk])
    assert entry("run.cancel").before == {"state": "running"}


def test_what_was_written_on_a_run_is_recorded_as_it_was_and_as_it_is(alice):
    run = make_run(requested_by=alice)
    services.run_annotate(run_id=run.pk, by=alice, name="nightly", note="", tags=["a"])
    services.run_annotate(run_id=run.pk, by=alice, name="nightly", note="", tags=["a"])
    found = entry("run.annotate")
    assert (found.before, found.after) == ({"name": "", "tags": []}, {"name": "nightly", "tags": ["a"]})


def test_pinning_deleting_and_restoring_are_recorded_for_each_run_it_was_done_to(root):
    first, second = make_measured_run(), make_measured_run(make_device("other"))
    services.runs_set_baseline(run_ids=[first.pk, second.pk], by=root, is_baseline=True)
    services.runs_set_baseline(run_ids=[second.pk], by=root, is_baseline=False)
    services.runs_delete(run_ids=[first.pk, second.pk], by=root)
    services.runs_restore(run_ids=[second.pk], by=root)
    told = AuditEntry.objects.filter(target_kind="run").order_by("pk").values_list("action", "target_id")
    pinned = [("run.baseline", str(run.pk)) for run in (second, first)]
    after = [("run.baseline", str(second.pk)), ("run.delete", str(second.pk)), ("run.restore", str(second.pk))]
    assert [each for each in told if each[0] != "run.create"] == pinned + after


def test_a_repeated_run_names_the_new_one(root):
    run = make_measured_run()
    again = services.run_again(run=run, requested_by=root)
    assert entry("run.retry").after == {"run": again.pk}


def test_a_device_is_recorded_for_what_people_decide_and_not_for_what_its_worker_tells():
    device = make_device()
    device.memory_used_bytes, device.price_per_hour_usd = 5, 2.5
    device.save()
    found = entry("device.change")
    assert (found.before, found.after) == ({"price_per_hour_usd": None}, {"price_per_hour_usd": 2.5})
    assert not AuditEntry.objects.filter(action="device.create").exists()


def test_who_may_use_a_device_is_recorded_from_whichever_side_it_is_changed(alice):
    device = make_device()
    device.allowed_users.add(alice)
    device.allowed_users.clear()
    told = AuditEntry.objects.filter(action="device.change").order_by("pk").values_list("before", "after")
    assert list(told) == [(None, {"allowed_users": ["alice"]}), ({"allowed_users": ["alice"]}, None)]


def test_a_role_is_recorded_with_the_person_who_got_it(alice):
    Group.objects.get(name=MANAGER).user_set.add(alice)
    found = AuditEntry.objects.filter(action="user.change", target_id=str(alice.pk)).first()
    assert found is not None
    assert found.after == {"groups": [MANAGER]}


def test_a_changed_password_is_told_but_never_shown(alice):
    alice.set_password("another password")
    alice.save()
    found = AuditEntry.objects.filter(action="user.change").first()
    assert found is not None
    assert found.after == {"password": "(changed)"}
    everything = str(list(AuditEntry.objects.values()))
    assert alice.password not in everything
    assert "md5$" not in everything


def test_saved_views_are_recorded_when_kept_and_forgotten(alice):
    view = services.saved_view_set(owner=alice, name="mine", query="state=failed", is_shared=False)
    assert view is not None
    services.saved_view_delete(view_id=view.pk, by=alice)
    actions = AuditEntry.objects.filter(target_kind="savedview").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["savedview.create", "savedview.delete"]
    assert not SavedView.objects.exists()


def test_signing_in_and_out_is_recorded_and_a_failure_without_what_was_typed(alice):
    client = Client()
    client.post("/login/", {"username": "alice", "password": "wrong"})
    client.post("/login/", {"username": "my secret pass phrase", "password": "wrong"})
    client.post("/login/", {"username": "alice", "password": "alice's password"})
    client.post("/logout/")
    told = AuditEntry.objects.filter(action__startswith="log").order_by("pk")
    assert [(each.action, each.actor_name, each.target_id) for each in told] == [
        ("login.failed", "", str(alice.pk)),
        ("login.failed", "", ""),
        ("login", "alice", str(alice.pk)),
        ("logout", "alice", str(alice.pk)),
    ]
    assert "secret" not in str(list(AuditEntry.objects.values()))


def test_knocking_on_a_locked_door_does_not_fill_the_log(alice, settings):
    for _ in range(settings.AXES_FAILURE_LIMIT + 10):
        Client().post("/login/", {"username": "alice", "password": "wrong"})
    told = list(AuditEntry.objects.filter(action__startswith="login").values_list("action", flat=True))
    assert told.count("login.failed") == settings.AXES_FAILURE_LIMIT
    assert told.count("login.lock") == 1


def test_every_action_that_is_recorded_can_be_filtered_for():
    files = Path(analysis.__file__).parent.rglob("*.py")
    code = "".join(path.read_text() for path in files if path.parent.name != "migrations")
    recorded = set(re.findall(r'record(?:_many)?\(\s*"([a-z.]+)"', code)) | set(re.findall(r'\("(run\.[a-z]+)",', code))
    assert len(recorded) > 10
    assert recorded <= set(ACTIONS)


def test_workers_leave_nothing_in_the_log():
    run = make_claimed_run()
    before = AuditEntry.objects.count()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="search")
    services.run_fail(run_id=run.pk, token=run.token, code="internal", message="it broke")
    Device.objects.update(last_seen_at=None)
    assert AuditEntry.objects.count() == before


def test_a_long_text_is_cut_and_says_so(alice):
    run = make_run(requested_by=alice)
    services.run_annotate(run_id=run.pk, by=alice, name="", note="x" * 5_000, tags=[])
    assert entry("run.annotate").after["note"].endswith("... (5000 characters)")


@pytest.mark.parametrize(
    "after",
    [
        {"runs": list(range(100_000))},
        {f"field {number}": "x" * 500 for number in range(1_000)},
        {"name" * 50_000: True},
        {"deep": {"er": [{"fields": ["x" * 500] * 30} for _ in range(300)]}},
    ],
    ids=["long list", "many members", "long name", "nested"],
)
def test_an_entry_is_small_whatever_is_recorded_and_says_what_is_missing(after):
    record("run.export", target=("run", ""), after=after)
    stored = json.dumps(entry("run.export").after)
    assert len(stored) < 2 * ENTRY_LENGTH
    assert re.search(r"\.\.\. \(\d+ (more|characters)\)", stored)


def test_an_action_in_bulk_is_written_in_one_statement(root, django_assert_num_queries):
    from analysis.audit.record import record_many

    with caused_by(WorkCause("r1", actor=root)), django_assert_num_queries(1):
        record_many("run.delete", [("run", str(number)) for number in range(50)])
    assert AuditEntry.objects.filter(actor=root, request_id="r1").count() == 50


def test_names_stay_when_the_person_is_gone():
    bob = make_user("bob", OPERATOR)
    with caused_by(WorkCause(actor=bob)):
        make_run()
    bob.delete()
    found = entry("run.create")
    assert (found.actor, found.actor_name) == (None, "bob")


@pytest.mark.parametrize("path", ["/runs/export.csv", "/api/v1/runs/export.csv"])
def test_an_export_is_recorded_with_what_was_asked_for(alice_client, alice, path):
    make_run()
    assert b"bert-tiny" in b"".join(alice_client.get(f"{path}?state=queued").streaming_content)
    found = entry("run.export")
    assert (found.actor, found.target_kind, found.target_id) == (alice, "run", "")
    assert found.after == {"form": "csv", "query": "state=queued"}


def test_an_export_from_the_panel_is_recorded_with_its_runs(root_client):
    run = make_run()
    root_client.post("/admin/analysis/run/", {"action": "export_json", "_selected_action": [run.pk]})
    assert entry("run.export").after == {"form": "json", "runs": [run.pk]}
