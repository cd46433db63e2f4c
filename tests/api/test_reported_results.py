"""A result document of another machine becomes a finished run, once, whatever is sent again or at the same time."""

import html
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analysis.lists.use.load import held_since
from analysis.models import AuditEntry, Device, Measurement, Run
from engine.questions.answers import FIRST_VERSION
from tests.engine.questions.answers.race_documents import document_of
from tests.factories import make_device, make_spec, make_user
from tests.factories.reports import (
    HOST,
    STARTED_AT,
    SendingClient,
    digest_of,
    make_document,
    make_events,
    make_run_key,
)

pytestmark = pytest.mark.django_db


def changed(document: bytes, **members: Any) -> bytes:
    content = json.loads(document)
    content["result"] |= members
    return json.dumps(content).encode()


def test_a_document_becomes_a_finished_run_with_its_figures_probes_and_origin(sender, alice):
    document = make_document(run_key := make_run_key())
    answer = sender.send_result(document)
    assert answer.status_code == 201, answer.content
    run = Run.objects.get()
    assert answer.json() == {"id": run.pk, "url": f"http://testserver/runs/{run.pk}/", "sha256": digest_of(document)}
    assert (run.state, run.kind, run.model, run.exit_status) == ("finished", "measurement", "bert-tiny", 0)
    assert (run.largest_batch_size, run.recommended_batch_size, run.certified) == (8, None, True)
    assert (run.reported_from, run.requested_by, run.is_trusted) == (HOST, alice, False)
    assert (run.report.run_key, run.report.token) == (run_key, sender.token)
    assert run.report.started_at.isoformat() == STARTED_AT
    assert list(Measurement.objects.of(run).values_list("batch_size", flat=True)) == [4, 8, 9, 8]
    assert run.attempts.get().environment["environment"]["host"] == HOST


def test_a_race_of_another_machine_is_stored_with_the_headline_that_its_rounds_give(sender, alice_client):
    content = json.loads(make_document(make_run_key()))
    race = document_of("changes that gain")
    race["environment"] = content["result"]["environment"]
    forged = {**content, "exit_status": 0, "result": {**race, "headline": "9x as fast."}}
    answer = sender.send_result(json.dumps(forged).encode())
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(kind="race")
    page = alice_client.get(run.get_absolute_url(), headers={"accept": "text/html"}).content.decode()
    assert race["headline"] in html.unescape(page)
    assert "Race again" in page


def test_the_duration_is_the_document_s_and_the_moments_are_this_server_s(sender):
    sender.send_result(make_document())
    run = Run.objects.get()
    assert (run.finished_at - run.started_at).total_seconds() == pytest.approx(120.0)
    # the one is the database's, in milliseconds on SQLite, the other is Python's, in microseconds
    assert run.finished_at > run.created_at - timedelta(milliseconds=1)


def test_a_document_that_is_sent_again_is_the_same_run(sender):
    document = make_document()
    first, again = sender.send_result(document), sender.send_result(document)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Run.objects.count() == 1


def test_a_sender_finds_out_which_documents_are_here(sender):
    document = make_document()
    stored = sender.send_result(document).json()
    answer = sender.query_known([stored["sha256"], "0" * 64])
    assert answer.json() == {"known": {stored["sha256"]: {"id": stored["id"], "url": stored["url"], "next": 0}}}


@pytest.mark.parametrize("sha256", [[], ["0" * 63], ["0" * 64 + "\n"], ["A" * 64], ["0" * 64] * 501, "0" * 64])
def test_a_query_without_digests_is_refused(sender, sha256):
    answer = sender.query_known(sha256)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"].startswith("/sha256")


def test_another_document_of_the_same_run_is_a_conflict_that_names_both_digests(sender):
    document = make_document(make_run_key())
    sender.send_result(document)
    other = changed(document, timings={"total_seconds": 121.0})
    answer = sender.send_result(other)
    assert answer.status_code == 409
    assert digest_of(document) in answer.json()["detail"]
    assert digest_of(other) in answer.json()["detail"]


def test_a_body_that_changed_on_its_way_is_refused(sender):
    answer = sender.send_result(make_document(), **{"Idempotency-Key": "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_key")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"environment": {"run_key": 7}}, "environment.run_key"),
        ({"environment": {"run_key": "0" * 32, "host": "", "started_at": STARTED_AT}}, "environment.host"),
        (
            {"environment": {"run_key": "0" * 32, "host": "a", "started_at": "2026-11-20T10:00:00"}},
            "environment.started_at",
        ),
        ({"spec": {**make_spec().to_dict(), "model": "no-such-model"}}, "model"),
        ({"device": None}, "device"),
        ({"probes": [{"batch_size": "8"}]}, "probes[0].batch_size"),
        ({"timings": {"total_seconds": -1.0}}, "timings.total_seconds"),
    ],
)
def test_a_malformed_document_is_refused_by_the_name_of_its_field(sender, members, field):
    answer = sender.send_result(changed(make_document(), **members))
    assert answer.status_code == 400, answer.content
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert not Run.all_runs.exists()


def test_a_document_of_an_engine_that_is_too_old_says_so_and_what_helps(sender):
    environment = {"torch": "2.1.0", "host": "node7"}
    answer = sender.send_result(changed(make_document(), environment=environment, no_such="of an earlier version"))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/environment.run_key")
    text = "the engine that wrote this is too old, its figures cannot be computed again; measure again with MemoryMark"
    assert f"{text} {FIRST_VERSION} or later" in answer.json()["detail"]
    assert FIRST_VERSION in (Path(__file__).parents[2] / "docs" / "reporting.md").read_text()
    assert not Run.all_runs.exists()


def test_a_figure_that_no_machine_can_have_measured_is_refused_with_its_bound_and_stores_nothing(sender):
    document = json.loads(make_document())
    document["result"]["timings"]["processes"] = -5
    answer = sender.send_result(json.dumps(document).encode())
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["claimed"], error["allowed"]) == ("/timings/processes", -5, [0, 10_000])
    assert not Run.all_runs.exists()
    assert AuditEntry.objects.get(action="run.report_refuse").after["host"] == HOST


def test_a_report_of_a_device_of_this_portal_is_of_that_device_and_leaves_its_queue_alone(sender, alice):
    own = make_device(HOST)
    sender.send_result(make_document())
    sender.begin(run_key := make_run_key())
    sender.send_events(run_key, 0, *make_events())
    assert list(Device.all_devices.all()) == [own]
    assert list(Run.objects.values_list("device", "state")) == [(own.pk, "running"), (own.pk, "finished")]
    assert list(Device.objects.idle()) == [own]
    assert Device.objects.with_activity().get().running_id is None
    assert not Run.objects.holding().on(own).exists()
    assert held_since(own.host.registered_at - timedelta(days=1)) == []  # until it is trusted
    assert Device.objects.get().last_seen_at is None


def test_a_reported_device_is_no_device_of_this_portal_that_only_has_the_same_address(sender):
    own = make_device(HOST, name="Another CPU")
    sender.send_result(make_document())
    run = Run.objects.get()
    assert list(Device.objects.all()) == [own]
    assert run.device != own
    assert (run.device.is_reported, run.device.host.name, run.device.enabled) == (True, HOST, False)


def test_another_document_of_a_run_key_of_another_person_is_a_run_of_one_s_own(sender):
    sender.send_result(make_document(run_key := make_run_key()))
    other = SendingClient(make_user("bob"))
    answer = other.send_result(changed(make_document(run_key), timings={"total_seconds": 130.0}))
    assert answer.status_code == 201
    assert "alice" not in answer.content.decode()
    assert set(Run.objects.values_list("requested_by__username", flat=True)) == {"alice", "bob"}


def test_a_document_that_another_person_sent_first_is_stored_for_its_owner_as_well(sender, alice):
    """Else who finds it in an artifact, sends it and deletes their run keeps it from its owner."""
    document, thief = make_document(), SendingClient(make_user("bob"))
    taken = thief.send_result(document).json()
    assert sender.query_known([taken["sha256"]]).json() == {"known": {}}
    own = sender.send_result(document)
    assert (own.status_code, own.json()["sha256"]) == (201, taken["sha256"])
    assert Run.objects.get(pk=own.json()["id"]).requested_by == alice
    assert sender.send_result(document).json() == own.json()
    known = sender.query_known([taken["sha256"]]).json()["known"]
    assert known[taken["sha256"]]["id"] == own.json()["id"] != taken["id"]


def test_who_reported_what_is_in_the_audit_log(sender, alice):
    sender.send_result(make_document())
    entries = AuditEntry.objects.filter(action__startswith="run.report").order_by("pk")
    assert [(entry.action, entry.actor) for entry in entries] == [("run.report", alice), ("run.report_result", alice)]
