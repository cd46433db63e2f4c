"""Who did what, from what to what, in answer to which request; and nobody changes or deletes an entry."""

import base64
import json
import logging
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.test import Client, RequestFactory
from django.utils import timezone

import analysis
from analysis.accounts.tokens import token_create
from analysis.audit.actions import ACTIONS
from analysis.audit.context import RequestIdFilter, WorkCause, cause_now, caused_by
from analysis.audit.middleware import RequestIdMiddleware
from analysis.audit.record import ENTRY_LENGTH, record
from analysis.models import AuditEntry, Device, Run, SavedView
from analysis.models.audit import AuditEntryImmutableError
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


def test_a_well_formed_id_is_taken_and_is_on_the_answer(client):
    assert client.get("/health", headers={"x-request-id": "ci-17.b_2"})["X-Request-ID"] == "ci-17.b_2"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ü", "<script>", "a;b"])
def test_any_other_id_is_replaced(client, given):
    made = client.get("/health", headers={"x-request-id": given})["X-Request-ID"]
    assert made != given
    assert len(made) == 32


def test_errors_have_an_id_too(client):
    assert client.get("/no/such/page")["X-Request-ID"]
    assert client.post("/analyze", "{", "application/json")["X-Request-ID"]


def test_a_person_known_by_token_password_or_session_is_the_actor(alice, alice_client):
    make_device()
    _token, secret = token_create(owner=alice, name="ci", may_write=True, expires_at=None)
    password = base64.b64encode(b"alice:alice's password").decode()
    ways = [(Client(), f"Bearer {secret}"), (Client(), f"Basic {password}"), (alice_client, "")]
    for client, shown in ways:
        headers = {"authorization": shown} if shown else {}
        answer = client.post("/api/v1/runs/", {"model": "bert-tiny"}, "application/json", headers=headers)
        assert answer.status_code in (201, 202), answer.content
    created = AuditEntry.objects.filter(action="run.create")
    assert [each.actor_name for each in created] == ["alice"] * 3


def test_nothing_of_a_request_is_left_when_it_was_answered_or_raised(alice):
    def fails(request):
        assert cause_now().request_id == request.request_id
        raise RuntimeError

    request = RequestFactory().get("/", headers={"x-request-id": "first"})
    request.user = alice
    with pytest.raises(RuntimeError):
        RequestIdMiddleware(fails)(request)
    make_run()
    found = AuditEntry.objects.get(action="run.create")
    assert (found.actor, found.actor_name, found.request_id, found.remote_address) == (None, "", "", None)


def test_a_line_of_the_log_names_its_request():
    lines = []

    def logs(request):
        line = logging.LogRecord("analysis", logging.INFO, "", 1, "hello", (), None)
        RequestIdFilter().filter(line)
        lines.append(line.request_text)
        raise ValueError

    with pytest.raises(ValueError, match="^$"):
        RequestIdMiddleware(logs)(RequestFactory().get("/", headers={"x-request-id": "abc"}))
    outside = logging.LogRecord("analysis", logging.INFO, "", 1, "hello", (), None)
    RequestIdFilter().filter(outside)
    assert [*lines, outside.request_text] == [" [abc]", ""]


@pytest.fixture
def any_entry() -> AuditEntry:
    record("run.delete", target=("run", "17"))
    return AuditEntry.objects.get(action="run.delete")


def test_no_code_changes_or_deletes_an_entry_by_mistake(any_entry):
    for forbidden in (any_entry.save, any_entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(AuditEntryImmutableError):
            forbidden()
    with pytest.raises(AuditEntryImmutableError):
        AuditEntry.objects.update(actor_name="somebody else")


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/"])
def test_in_the_panel_even_a_superuser_can_only_read(root_client, any_entry, path):
    answer = root_client.post(f"/admin/analysis/auditentry/{path.format(any_entry.pk)}", {"actor_name": "x"})
    assert answer.status_code == 403
    assert AuditEntry.objects.get(pk=any_entry.pk).actor_name == ""


def test_the_oldest_go_by_retention(any_entry):
    assert AuditEntry.objects.all().purge_before(timezone.now() - timedelta(days=1), limit=10) == 0
    assert AuditEntry.objects.all().purge_before(timezone.now() + timedelta(days=1), limit=10) == 1


@pytest.mark.parametrize(("text", "count"), [("run 17", 1), ("run:17", 1), ("run 18", 0), ("req-1", 1), ("alice", 1)])
def test_the_log_is_searched_by_request_person_and_target(root_client, alice, any_entry, text, count):
    from analysis.audit.context import WorkCause, caused_by

    with caused_by(WorkCause("req-1", actor=alice)):
        record("run.cancel", target=("run", "3"))
    rows = root_client.get("/admin/analysis/auditentry/", {"q": text}).context["cl"].result_list
    assert len(rows) == count


def test_further_pages_begin_after_the_last_entry(root_client):
    for number in range(60):
        record("run.delete", target=("run", str(number)))
    first = root_client.get("/admin/analysis/auditentry/?kind=run").context["cl"]
    second = root_client.get(f"/admin/analysis/auditentry/{first.next_query}").context["cl"]
    assert [row.target_id for row in second.result_list] == [str(number) for number in range(9, -1, -1)]
    assert second.next_query is None


@pytest.mark.parametrize(
    "query", ["?days=7&action=run.delete", "?action=run.delete", "?kind=run", "?target_kind=run&target_id=17"]
)
def test_the_log_is_filtered(root_client, any_entry, query):
    rows = root_client.get(f"/admin/analysis/auditentry/{query}").context["cl"].result_list
    assert [row.pk for row in rows] == [any_entry.pk]
