"""What a sender may bring is bounded, in a call and in a run, and what is broken or hostile breaks no page."""

import json
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.api import limits, waiting
from analysis.models import AuditEntry, Device, Measurement, Report, Run, RunLog
from engine.questions.answers.document import MOST_PROBES
from engine.race.speed.comparison import TimedBlock
from engine.report.protocol import PROBES_MOST
from tests.engine.honest_worker import HonestWorker, document_of
from tests.factories import STACK, make_refusal
from tests.factories.reports import (
    DEVICE,
    HOST,
    STARTED_AT,
    SendingClient,
    make_document,
    make_events,
    make_probes,
    make_run_key,
)

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


MIB = 1024 * 1024


class ManySteps(HonestWorker):
    """Steps so short that thousands of them fit into a block: their times are most of the document."""

    def __init__(self) -> None:
        super().__init__(528, step_seconds=lambda size: 1e-4 + 1e-6 * size)

    def time(self, batch_size: int, **limits: Any) -> TimedBlock:
        blocks = [super(ManySteps, self).time(batch_size, **limits) for _ in range(300)]
        steps = tuple(seconds for block in blocks for seconds in block.step_seconds)
        return replace(blocks[0], step_seconds=steps, wall_seconds=max(sum(steps), limits["block_seconds"]))


def honest_document(size: int) -> bytes:
    """A result file of at least this size: each number on a line of its own, indented until it is that large."""
    result = document_of(ManySteps())
    result["environment"] |= {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT}
    content = {"exit_status": 0, "result": result}
    plain, deep = (len(json.dumps(content, indent=indent)) for indent in (0, 1))
    return json.dumps(content, indent=(size - plain) // (deep - plain) + 1).encode()


@pytest.mark.parametrize("size", [1_100_000, 3_800_000])
def test_a_result_of_up_to_four_mebibytes_is_stored(sender: SendingClient, alice_client: Client, size: int) -> None:
    document = honest_document(size)
    assert size <= len(document) < 4 * MIB
    answer = sender.send_result(document)
    assert answer.status_code == 201, answer.content[:500]
    run = Run.objects.get()
    assert run.largest_batch_size == 528
    assert alice_client.get(f"/runs/{run.pk}/").status_code == 200


def test_a_larger_result_is_refused_with_the_limit(sender: SendingClient) -> None:
    answer = sender.send_result(honest_document(4 * MIB))
    assert answer.status_code == 413
    assert "4,194,304" in answer.json()["detail"]
    assert not Run.all_runs.exists()


@pytest.mark.parametrize("size", [1_100_000, 3_800_000])
def test_other_routes_take_no_more_than_before_although_one_takes_four_mebibytes(
    sender: SendingClient, size: int
) -> None:
    sender.begin(key := make_run_key())
    events = sender.send_events(key, 0, {"event": "log", "message": "x" * size})
    begun = sender.begin(make_run_key(), engine_version="x" * size)
    known = sender.query_known(["0" * size])
    assert [answer.status_code for answer in (events, begun, known)] == [413] * 3


@pytest.mark.parametrize("size", [70_000, 1_040_000])
def test_a_body_below_what_the_server_reads_is_refused_above_its_route_s_own_limit(
    sender: SendingClient, size: int
) -> None:
    answer = sender.begin(make_run_key(), engine_version="x" * size)
    assert answer.status_code == 413
    assert "65,536" in answer.json()["detail"]


SOMEBODY = AnonymousUser()


@pytest.mark.parametrize(("threads", "places"), [(None, 4), (1, 1), (4, 1), (16, 4), (64, 16)])
def test_at_most_a_quarter_of_the_threads_read_documents_or_wait_to(settings, threads, places):
    settings.WEB_THREADS = threads
    assert waiting.documents.places() == places


def test_one_document_too_many_is_to_be_sent_again(sender, settings):
    settings.WEB_THREADS = 4
    with waiting.documents.place(SOMEBODY):
        answer = sender.send_result(make_document())
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")
        assert 1 <= int(answer.headers["Retry-After"]) <= 4
        assert not Run.objects.exists()
    assert sender.send_result(make_document()).status_code == 201


def test_a_document_waits_for_the_one_that_is_read(sender, monkeypatch):
    """Two at once are stored no sooner, and everybody else waits twice as long."""
    monkeypatch.setattr(limits, "DOCUMENT_WAIT_SECONDS", 0.01)
    with waiting.document_place(SOMEBODY):
        assert sender.send_result(make_document()).status_code == 503
    monkeypatch.setattr(limits, "DOCUMENT_WAIT_SECONDS", 60.0)
    with ExitStack() as other:
        other.enter_context(waiting.document_place(SOMEBODY))
        threading.Timer(0.2, other.pop_all().close).start()
        assert sender.send_result(make_document()).status_code == 201


def test_documents_that_are_refused_give_their_place_back(sender, settings):
    settings.WEB_THREADS = 1
    for body in (b"{", b"{}", b"[]", make_document(timings={"processes": -5}), make_document(schema=2)):
        assert sender.send_result(body).status_code in (400, 422)
    document = make_document()
    assert [sender.send_result(document).status_code for _ in range(2)] == [201, 200]


NOT_STORABLE = ["\ud800", "\x00"]


def with_part(path: str, name: str, value: Any) -> bytes:
    """A document with this member in the object at the path."""
    document = json.loads(make_document())
    place = document["result"]
    for step in path.split():
        place = place[step]
    place[name] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize("text", NOT_STORABLE)
def test_text_of_a_document_that_no_database_stores_is_marked(sender, text):
    answer = sender.send_result(with_part("device", "uuid", f"GPU-{text}"))
    assert answer.status_code == 201, answer.content
    run = Run.objects.with_places().get()
    assert (run.device.uuid, run.result["device"]["uuid"]) == ("GPU-\ufffd", "GPU-\ufffd")


@pytest.mark.parametrize("text", NOT_STORABLE)
@pytest.mark.parametrize("path", ["", "kinds"])
def test_text_that_no_database_stores_in_what_is_no_fact_is_not_stored(sender, text, path):
    answer = sender.send_result(with_part(path, "a" + text, "b" + text))
    assert answer.status_code == 201, answer.content
    assert "\ufffd" not in json.dumps(Run.objects.get().result, ensure_ascii=False)


@pytest.mark.parametrize("text", NOT_STORABLE)
def test_text_that_no_database_stores_is_shown_where_a_document_is_refused_for_it(sender, text):
    answer = sender.send_result(with_part("spec", "a" + text, "b"))
    assert answer.status_code in (400, 422), answer.content
    assert answer.json()["errors"]
    assert not Run.all_runs.exists()


@pytest.mark.parametrize("host", ["a\x07", "a\ud800", "a\u202e"])
def test_a_host_whose_name_cannot_be_shown_is_refused(sender, host):
    answer = sender.send_result(make_document(host=host))
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/environment.host"]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_is_none_in_utc_is_refused_by_its_name(sender, moment):
    answer = sender.send_result(with_part("environment", "started_at", moment))
    assert answer.status_code == 400, answer.content
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/environment.started_at"]
