"""A run that another machine executes is live: its events are stored once, silence ends it, its result finishes it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Device, Measurement, Run, RunLog, State
from analysis.runs import services
from engine.describe.time_left import TimeLeft
from tests.factories import make_device, make_probe, make_user
from tests.factories.reports import HOST, SendingClient, make_document, make_events, make_probes, make_run_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def run_key(sender: SendingClient) -> str:
    key = make_run_key()
    assert sender.begin(key).status_code == 201
    return key


def make_silent(run: Run) -> None:
    """The last sign of life is long ago, and was found missing a while ago."""
    long_ago = timezone.now() - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=long_ago, suspect_at=long_ago)


def received(answer: Any) -> tuple[int, bool]:
    assert answer.status_code == 200, answer.content
    return answer.json()["next"], answer.json()["cancel_requested"]


def test_a_run_that_is_announced_is_running_and_the_same_key_is_the_same_run(sender, alice):
    first, again = sender.begin(key := make_run_key()), sender.begin(key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    run = Run.objects.get()
    assert first.json() == {
        "id": run.pk,
        "url": f"http://testserver/runs/{run.pk}/",
        "next": 0,
        "heartbeat_seconds": 15.0,
    }
    assert (run.state, run.requested_by, run.reported_from, run.is_trusted) == (State.RUNNING, alice, HOST, False)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"run_key": "short"}, "run_key"),
        ({"run_key": "G" * 32}, "run_key"),
        ({"kind": "estimate"}, "kind"),
        ({"host": "a\nb"}, "host"),
        ({"spec": {"model": "bert-tiny", "no_such": 1}}, "no_such"),
        ({"token": "x"}, "token"),
    ],
)
def test_an_announcement_with_a_wrong_field_is_refused_by_its_name(sender, members, field):
    answer = sender.begin(**{"run_key": make_run_key(), **members})
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]


def test_events_become_probes_log_phase_and_device(sender, run_key):
    events = make_events(make_probes()[:2])
    assert received(sender.send_events(run_key, 0, *events)) == (len(events), False)
    run = Run.objects.with_places().get()
    assert (run.phase, run.device_name, run.device.host.name) == ("searching", "Test CPU", HOST)
    assert list(Measurement.objects.of(run).values_list("sequence", "batch_size")) == [(1, 4), (2, 8)]
    assert [line.message for line in RunLog.objects.of(run)][-1].startswith("batch 8 fits")
    assert run.attempts.get().environment["environment"]["torch"] == "0.0"
    assert Device.objects.count() == 0


def test_events_that_are_sent_again_are_stored_once_and_new_ones_behind_them(sender, run_key):
    events = make_events(make_probes()[:2])
    sender.send_events(run_key, 0, *events[:5])
    assert received(sender.send_events(run_key, 0, *events)) == (6, False)
    assert received(sender.send_events(run_key, 3, *events[3:])) == (6, False)
    run = Run.objects.get()
    assert list(Measurement.objects.of(run).values_list("sequence", "batch_size")) == [(1, 4), (2, 8)]
    assert RunLog.objects.of(run).count() == 5


def test_a_gap_in_the_events_is_a_conflict_that_names_the_one_that_is_missing(sender, run_key):
    answer = sender.send_events(run_key, 3, *make_events())
    assert (answer.status_code, answer.json()["code"], answer.json()["next"]) == (409, "events_missing", 0)
    assert not RunLog.objects.exists()


@pytest.mark.parametrize("event", [{"event": "result", "result": {}}, {"event": "no_such"}, {}])
def test_what_is_no_event_of_a_live_run_is_refused_and_nothing_is_stored(sender, run_key, event):
    answer = sender.send_events(run_key, 0, *make_events(), event)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/events~14"]
    assert not RunLog.objects.exists()


def test_an_event_that_no_column_can_hold_is_skipped_and_the_log_says_so(sender, run_key):
    probe = make_probe(4).to_dict() | {"steps": -1}
    assert received(sender.send_events(run_key, 0, {"event": "probe", "probe": probe})) == (1, False)
    assert not Measurement.objects.exists()
    assert "Skipped a probe event" in RunLog.objects.get().message


def test_the_time_left_is_computed_once_for_all_events_of_a_call(sender, run_key, monkeypatch):
    computed: list[float] = []
    say = TimeLeft.say
    monkeypatch.setattr(TimeLeft, "say", lambda time_left, now: computed.append(now) or say(time_left, now))
    events = make_events()
    assert received(sender.send_events(run_key, 0, *events)) == (len(events), False)
    assert computed == [events[-1]["seconds"]]
    assert Run.objects.get().attempts.get().progress["phase"] == "searching"
    sender.send_events(run_key, len(events))
    assert len(computed) == 1


def test_a_heartbeat_answers_that_the_run_was_cancelled_on_its_page(sender, run_key, alice_client: Client):
    run = Run.objects.get()
    alice_client.post(f"/runs/{run.pk}/cancel/")
    assert received(sender.send_events(run_key, 0)) == (0, True)
    error = {"event": "error", "error": {"code": "interrupted", "message": "stopped", "exit_status": 130}}
    sender.send_events(run_key, 0, error)
    assert Run.objects.get().state == State.CANCELLED


def test_an_error_ends_the_run_as_failed_with_its_code(sender, run_key):
    error = {"event": "error", "error": {"code": "workload_failed", "message": "no such layer", "exit_status": 1}}
    sender.send_events(run_key, 0, *make_events(), error)
    run = Run.objects.get()
    assert (run.state, run.error_code, run.error_message, run.exit_status) == (
        "failed",
        "workload_failed",
        "no such layer",
        1,
    )


STOP = {"event": "error", "error": {"code": "stopped", "message": "stopped by Ctrl-C where it ran"}}


def test_a_stop_where_it_ran_ends_it_at_once_as_interrupted(sender, run_key):
    sender.send_events(run_key, 0, *make_events(), STOP)
    run = Run.objects.get()
    assert (run.state, run.error_code, run.error_message) == ("interrupted", "stopped", STOP["error"]["message"])
    assert (run.attempts.get().outcome, run.attempts.get().cause) == ("interrupted", "stopped")


def test_a_stop_whose_answer_was_lost_stays_the_end_when_it_is_sent_again(sender, run_key):
    for _ in range(2):
        assert received(sender.send_events(run_key, 0, *make_events(), STOP)) == (5, False)
        assert received(sender.send_events(run_key, 5)) == (5, False)
        assert Run.objects.get().state == State.INTERRUPTED


def test_a_stop_that_arrives_after_the_silence_replaces_its_reason(sender, run_key):
    make_silent(Run.objects.get())
    services.runs_reap()
    sender.send_events(run_key, 0, *make_events(), STOP)
    run = Run.objects.get()
    assert (run.state, run.error_code, run.finished_at is None) == (State.INTERRUPTED, "stopped", False)


def test_nothing_that_comes_behind_a_stop_is_refused(sender, run_key):
    sender.send_events(run_key, 0, *make_events(), STOP)
    assert received(sender.send_events(run_key, 5, {"event": "log", "message": "on"})) == (6, False)
    assert Run.objects.get().state == State.RUNNING
    assert sender.send_result(make_document(run_key)).status_code == 201
    run = Run.objects.get()
    assert (run.state, run.error_code, run.attempts.get().cause) == (State.FINISHED, "", "")


def test_a_stop_of_a_run_that_was_cancelled_here_is_the_cancel(sender, run_key, alice_client: Client):
    alice_client.post(f"/runs/{Run.objects.get().pk}/cancel/")
    sender.send_events(run_key, 0, STOP)
    assert Run.objects.get().state == State.CANCELLED


def test_silence_ends_it_as_interrupted_and_no_worker_ever_gets_it(sender, run_key):
    device = make_device()
    make_silent(Run.objects.get())
    assert services.runs_reap() == 1
    run = Run.objects.get()
    assert (run.state, run.error_code) == (State.INTERRUPTED, "host_lost")
    assert HOST in run.error_message
    assert services.run_claim(device=device, owner="worker") is None
    assert services.run_claim(device=device, owner="worker", run_id=run.pk) is None


def test_a_sign_of_life_after_silence_makes_it_running_again(sender, run_key):
    make_silent(Run.objects.get())
    services.runs_reap()
    sender.send_events(run_key, 0, *make_events())
    run = Run.objects.get()
    assert (run.state, run.finished_at, run.error_code, run.phase) == (State.RUNNING, None, "", "searching")


def test_its_result_finishes_it_even_after_silence_and_replaces_what_came_one_by_one(sender, run_key):
    sender.send_events(run_key, 0, *make_events(make_probes()[:1]))
    run = Run.objects.get()
    make_silent(run)
    services.runs_reap()
    answer = sender.send_result(make_document(run_key))
    assert (answer.status_code, answer.json()["id"]) == (201, run.pk)
    run = Run.objects.get()
    assert (run.state, run.error_code, run.error_message, run.exit_status) == ("finished", "", "", 0)
    assert list(Measurement.objects.of(run).values_list("batch_size", flat=True)) == [4, 8, 9, 8]
    attempt = run.attempts.get()
    assert (attempt.outcome, attempt.cause) == ("finished", "")


def test_events_behind_the_result_change_nothing(sender, run_key):
    sender.send_result(make_document(run_key))
    before = Run.objects.get()
    error = {"event": "error", "error": {"code": "late", "message": "late"}}
    assert received(sender.send_events(run_key, 0, error)) == (1, False)
    assert Run.objects.get() == before
    assert Run.objects.get().state == State.FINISHED


def test_a_result_of_another_model_than_the_announced_one_is_a_conflict(sender):
    sender.begin(key := make_run_key(), spec={"model": "gpt2"})
    answer = sender.send_result(make_document(key))
    assert answer.status_code == 409
    assert "gpt2" in answer.json()["detail"]
    assert Run.objects.get().state == State.RUNNING


def test_events_for_a_key_of_another_person_are_answered_as_for_an_unknown_one(sender, run_key):
    other = SendingClient(make_user("bob"))
    unknown = other.send_events(make_run_key(), 0)
    theirs = other.send_events(run_key, 0)
    assert (theirs.status_code, unknown.status_code) == (404, 404)
    assert theirs.json()["detail"] == unknown.json()["detail"]


def test_a_key_that_another_person_announced_first_is_a_run_of_one_s_own(sender, alice):
    """Who finds a key in an artifact of CI and announces it takes nothing from its owner."""
    thief, key = SendingClient(make_user("bob")), make_run_key()
    taken = thief.begin(key).json()
    thief.send_events(key, 0, *make_events(make_probes()[:2]))
    own = sender.begin(key)
    assert (own.status_code, own.json()["next"]) == (201, 0)
    assert own.json()["id"] != taken["id"]
    assert received(sender.send_events(key, 0, {"event": "log", "message": "mine"})) == (1, False)
    assert sender.send_result(make_document(key)).json()["id"] == own.json()["id"]
    assert Run.objects.get(pk=taken["id"]).state == State.RUNNING
    assert Run.objects.get(pk=own.json()["id"]).requested_by == alice


def test_several_runs_of_one_device_may_be_live_at_once(sender):
    for key in (make_run_key(), make_run_key()):
        sender.begin(key)
        assert sender.send_events(key, 0, *make_events()).status_code == 200
    assert Run.objects.filter(state=State.RUNNING, device__isnull=False).values("device").distinct().count() == 1


def test_a_reported_run_takes_no_place_in_the_queue_and_no_quota(sender, run_key, alice):
    assert not Run.objects.on_devices().exists()
    assert not Run.objects.on_devices().running().exists()


def test_a_body_of_events_may_have_a_megabyte_and_no_more(sender, run_key):
    line = {"event": "log", "level": "info", "message": "x" * 4_000}
    assert sender.send_events(run_key, 0, *[line] * 240).status_code == 200
    assert len(json.dumps([line] * 260)) > 1_000_000
    assert sender.send_events(run_key, 240, *[line] * 260).status_code == 413


def test_more_events_than_allowed_in_a_call_are_refused(sender, run_key):
    answer = sender.send_events(run_key, 0, *[{"event": "log", "message": "x"}] * 501)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/events"]


def test_text_that_no_database_stores_is_marked_and_keeps_no_event_back(sender, run_key):
    line = {"event": "log", "level": "info", "message": "cut \udc80 and \x00 nul"}
    assert received(sender.send_events(run_key, 0, line)) == (1, False)
    assert RunLog.objects.get().message.startswith("cut")
