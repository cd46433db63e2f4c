"""What a sender may bring is bounded: in a call, so that nobody waits for it, and in a run, as a result is."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.models import AuditEntry, Device, Measurement, Report, Run, RunLog
from engine.answers.document import MOST_PROBES
from engine.report.protocol import PROBES_MOST
from tests.factories import STACK, make_refusal
from tests.factories.reports import DEVICE, SendingClient, make_document, make_events, make_probes, make_run_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def run_key(sender: SendingClient) -> str:
    sender.begin(key := make_run_key())
    return key


def probe_event(batch_size: int = 4, **fields: Any) -> dict[str, Any]:
    return {
        "event": "probe",
        "seconds": 2.0,
        "probe": replace(make_probes()[0], batch_size=batch_size, **fields).to_dict(),
    }


def send_many(sender: SendingClient, key: str, events: list[dict[str, Any]], most: int = PROBES_MOST) -> None:
    first = Report.objects.get(run_key=key).events_received
    for start in range(0, len(events), most):
        answer = sender.send_events(key, first + start, *events[start : start + most])
        assert answer.status_code == 200, answer.content


def statements_of(sender: SendingClient, probes: int) -> int:
    sender.begin(key := make_run_key())
    with CaptureQueriesContext(connection) as captured:
        assert sender.send_events(key, 0, *[probe_event()] * probes).status_code == 200
    return len(captured)


def test_the_probes_of_a_call_are_stored_together_and_not_one_by_one(sender: SendingClient) -> None:
    """SQLite takes 38 rows of a probe's columns in a statement: 999 values."""
    statements_of(sender, 1)  # the first call of a person makes the row of their rate limit
    one = statements_of(sender, 1)
    assert statements_of(sender, PROBES_MOST) <= one + 1


def test_more_probes_than_a_call_may_bring_are_refused_by_their_number_and_nothing_is_stored(
    sender: SendingClient, run_key: str
) -> None:
    answer = sender.send_events(run_key, 0, *[probe_event()] * (PROBES_MOST + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many_probes")
    assert str(PROBES_MOST) in answer.json()["detail"]
    assert not Measurement.objects.exists()


def test_a_live_run_stores_as_many_probes_as_a_result_may_have_and_its_log_says_so_once(
    sender: SendingClient, run_key: str, alice_client: Client
) -> None:
    send_many(sender, run_key, [probe_event(size) for size in range(1, MOST_PROBES + 2 * PROBES_MOST)])
    run = Run.objects.get()
    assert list(Measurement.objects.of(run).values_list("sequence", flat=True)) == list(range(1, MOST_PROBES + 1))
    assert RunLog.objects.of(run).filter(message__contains="later ones are dropped").count() == 1
    for page in (f"/runs/{run.pk}/", f"/runs/{run.pk}/live/", f"/api/v1/runs/{run.pk}/"):
        assert alice_client.get(page).status_code == 200


def test_the_probes_of_a_live_run_take_no_more_room_than_a_result(
    sender: SendingClient, run_key: str, settings: Any
) -> None:
    settings.REPORTED_RESULT_MAX_BYTES = 100_000
    long = {"event": "probe", "probe": make_refusal(9, error_message="x" * 30_000).to_dict()}
    for _ in range(5):
        send_many(sender, run_key, [long, long])
    assert Measurement.objects.count() == 3
    assert RunLog.objects.filter(message__contains="later ones are dropped").count() == 1


def test_a_run_whose_live_probes_were_dropped_is_finished_by_its_result(
    sender: SendingClient, run_key: str, settings: Any
) -> None:
    settings.REPORTED_RESULT_MAX_BYTES = 10_000
    send_many(sender, run_key, [{"event": "probe", "probe": make_refusal(9, error_message="x" * 30_000).to_dict()}])
    assert sender.send_result(make_document(run_key)).status_code == 201
    assert list(Measurement.objects.of(Run.objects.get()).values_list("batch_size", flat=True)) == [4, 8, 9, 8]


def test_the_progress_of_a_live_run_has_known_phases_and_stays_small(sender: SendingClient, run_key: str) -> None:
    for number in range(3):
        phases = [{"event": "phase", "seconds": 1.0, "phase": f"{number}-{place}" * 200} for place in range(400)]
        large = {"event": "phase", "seconds": "9" * 200_000, "phase": "searching"}
        send_many(sender, run_key, [*make_events(), *phases, large], most=500)
    progress = Run.objects.get().attempts.get().progress
    assert list(progress["phases"]) == ["preparing", "searching"]
    assert len(json.dumps(progress)) < 1_000
    assert RunLog.objects.filter(message__contains="Skipped a phase event").count() == 3


@pytest.mark.parametrize("name", ["device", "estimate", "timing", "probe_started"])
def test_an_event_larger_than_any_honest_one_is_skipped_and_the_log_says_so(
    sender: SendingClient, run_key: str, name: str
) -> None:
    event = {"event": name, "device": DEVICE.to_dict(), "environment": {"torch": "x" * 100_000}, "estimate": {}}
    assert sender.send_events(run_key, 0, *make_events(), event).status_code == 200
    assert len(json.dumps(Run.objects.get().attempts.get().environment)) < 5_000
    assert f"Skipped a {name} event" in RunLog.objects.of(Run.objects.get()).last().message


def test_the_devices_that_a_live_run_names_are_one(sender: SendingClient, run_key: str) -> None:
    for number in range(3):
        device = {**DEVICE.to_dict(), "name": f"card {number}"}
        send_many(sender, run_key, [{"event": "device", "device": device, "environment": dict(STACK)}])
    assert Device.all_devices.count() == 1


def forged(**members: Any) -> bytes:
    """A document with other members than its probes show."""
    document = json.loads(make_document())
    environment = document["result"]["environment"] | members.pop("environment", {})
    document["result"] |= {**members, "environment": environment}
    return json.dumps(document).encode()


def test_many_impossible_fields_are_named_by_the_first_and_their_number(sender: SendingClient) -> None:
    probes = [{"batch_size": 1, "outcome": "error", "steps": -1}] * 300
    answer = sender.send_result(forged(probes=probes))
    assert (answer.status_code, answer.json()["code"]) == (422, "impossible")
    assert [each["field"] for each in answer.json()["errors"]] == [f"probes[{number}].steps" for number in range(10)]
    assert answer.json()["impossible_fields"] == 300
    assert "290 more" in answer.json()["detail"]
    entry = AuditEntry.objects.get(action="run.report_refuse").after
    assert (len(entry["fields"]), entry["impossible_fields"]) == (10, 300)


def test_an_impossible_value_is_cut_in_answer_and_log(sender: SendingClient) -> None:
    answer = sender.send_result(
        forged(device={**json.loads(make_document())["result"]["device"], "name": "z" * 19_000})
    )
    assert answer.status_code == 422
    assert len(answer.content) < 4_000
    assert len(json.dumps(AuditEntry.objects.get(action="run.report_refuse").after)) < 1_000


@pytest.mark.parametrize(
    "members",
    [
        {"kinds": {f"{number}": "measured" for number in range(70_000)}},
        {"kinds": {"k" * 300: "measured"}},
        {"environment": {"e" * 300: 1}},
    ],
    ids=["many names", "a long name", "a long name of the environment"],
)
def test_names_that_no_engine_writes_are_refused_in_a_short_answer_and_not_recorded(
    sender: SendingClient, members: dict[str, Any]
) -> None:
    answer = sender.send_result(forged(**members))
    assert answer.status_code == 400
    assert len(answer.content) < 1_000
    assert not AuditEntry.objects.filter(action="run.report_refuse").exists()
