"""Waiting for a run: one request for a shell, a stream of events for tooling."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.test import Client

from analysis.api import limits
from analysis.api.waiting import WaitingSlots, streams
from analysis.models import Run
from analysis.runs import services
from analysis.runs.services import LogLine
from tests.factories import make_claimed_run, make_device, make_measured_run, make_probe, make_result
from tests.factories.reports import SendingClient, make_document, make_events, make_probes, make_run_key

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAM_POLL_SECONDS", 0.0)


def close(response: Any) -> None:
    """Close a stream as the server does, but for Django's connections: they hold the transaction of the test."""
    request_finished.disconnect(close_old_connections)
    response.close()
    request_finished.connect(close_old_connections)


def events_of(response: Any) -> list[dict[str, Any]]:
    """Read the stream to its end, as a client of Server-Sent Events does."""
    assert isinstance(response, StreamingHttpResponse)
    return parsed(response.streaming_content)


def parsed(chunks: Iterable[bytes]) -> list[dict[str, Any]]:
    text = b"".join(chunks).decode()
    whole = [block for block in text.split("\n\n") if block.startswith("event")]
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in whole]
    return [{**block, "data": json.loads(block["data"])} for block in blocks]


def run_with_events() -> Run:
    run = make_claimed_run(make_device())
    lease = {"run_id": run.pk, "token": run.token}
    services.log_add(**lease, first_sequence=1, lines=[LogLine("info", f"line {number}") for number in (1, 2)])
    services.measurement_add(**lease, sequence=1, probe=make_probe(4))
    services.run_finish(**lease, result=make_result().to_dict())
    return run


def test_the_end_of_a_run_answers_at_once(alice_client: Client) -> None:
    run = make_measured_run()
    response = alice_client.get(f"/api/v1/runs/{run.pk}/wait/")
    assert response.status_code == 200
    assert (response.json()["state"], response.json()["is_over"]) == ("finished", True)


def test_a_wait_that_runs_out_is_a_202_that_says_when_to_come_again(alice_client: Client) -> None:
    run = make_claimed_run()
    response = alice_client.get(f"/api/v1/runs/{run.pk}/wait/?timeout=0")
    assert (response.status_code, response.headers["Retry-After"]) == (202, "2")
    assert response.json()["state"] == "running"


def test_without_a_slot_a_wait_answers_at_once(alice_client: Client, settings: Any) -> None:
    settings.ANALYZE_WAITING_REQUESTS = 0
    run = make_claimed_run()
    response = alice_client.get(f"/api/v1/runs/{run.pk}/wait/?timeout=90")
    assert (response.status_code, response.headers["Retry-After"]) == (202, "10")


def test_a_stream_has_every_event_in_order_and_ends_with_the_run(alice_client: Client) -> None:
    run = run_with_events()
    response = alice_client.get(f"/api/v1/runs/{run.pk}/events/stream/", headers={"Accept": "text/event-stream"})
    assert response.headers["Content-Type"] == "text/event-stream"
    events = events_of(response)
    assert [event["event"] for event in events] == ["state", "log", "log", "probe", "end"]
    assert [event["data"]["message"] for event in events[1:3]] == ["line 1", "line 2"]
    assert events[3]["data"]["batch_size"] == 4
    assert events[-1]["data"]["state"] == "finished"


def test_a_stream_continues_after_the_last_event_that_was_received(alice_client: Client) -> None:
    run = run_with_events()
    address = f"/api/v1/runs/{run.pk}/events/stream/"
    whole = events_of(alice_client.get(address))
    for received in range(1, len(whole) - 1):
        rest = events_of(alice_client.get(address, headers={"Last-Event-ID": whole[received]["id"]}))
        assert [event["id"] for event in rest if event["event"] != "state"] == [
            event["id"] for event in whole[received + 1 :]
        ]


def test_a_stream_of_a_reported_run_sends_each_probe_once_although_its_result_repeats_them(
    alice: User, alice_client: Client
) -> None:
    sender, key, probes = SendingClient(alice), make_run_key(), make_probes()
    address = f"/api/v1/runs/{sender.begin(key).json()['id']}/events/stream/"
    other = replace(probes[1], steps=probes[1].steps + 1)  # what the live run said differs from the document
    sender.send_events(key, 0, *make_events([probes[0], other]))
    response = alice_client.get(address)
    chunks = iter(response.streaming_content)
    live = [next(chunks) for _ in range(9)]
    assert sum(chunk.startswith(b"event: probe") for chunk in live) == 2
    sender.send_result(make_document(key))
    later = [event["data"] for event in parsed(chunks) if event["event"] == "probe"]
    assert [(probe["sequence"], probe["batch_size"]) for probe in later] == [(2, 8), (3, 9), (4, 8)]


def test_after_the_end_a_client_that_connects_again_is_stopped(alice_client: Client) -> None:
    run = run_with_events()
    address = f"/api/v1/runs/{run.pk}/events/stream/"
    last = events_of(alice_client.get(address))[-1]["id"]
    assert alice_client.get(address, headers={"Last-Event-ID": last}).status_code == 204


def test_a_stream_of_a_running_run_shows_what_comes_and_that_it_is_alive(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STREAM_HEARTBEAT_SECONDS", 0.0)
    run = make_claimed_run()
    response = alice_client.get(f"/api/v1/runs/{run.pk}/events/stream/")
    chunks = iter(response.streaming_content)
    assert next(chunks).startswith(b"retry: ")
    assert b'"state": "running"' in next(chunks)
    assert next(chunks).startswith(b":")
    services.log_add(run_id=run.pk, token=run.token, first_sequence=1, lines=[LogLine("info", "now")])
    assert any(b'"now"' in next(chunks) for _ in range(3))
    close(response)


@pytest.mark.parametrize("text", ["x", "1", "1.2.3", "-1.0", "01.2", "1.99999999999999999999", "1.2.fin", "²."])
def test_an_id_that_is_none_of_the_streams_is_refused(alice_client: Client, text: str) -> None:
    address = f"/api/v1/runs/{make_claimed_run().pk}/events/stream/"
    response = alice_client.get(address, headers={"Last-Event-ID": text})
    assert response.status_code == 400
    assert "Last-Event-ID" in response.json()["detail"]


def test_beyond_the_limit_a_stream_is_refused_until_another_one_ends(alice_client: Client, settings: Any) -> None:
    settings.STREAMS_OPEN = 1
    address = f"/api/v1/runs/{make_claimed_run().pk}/events/stream/"
    first = alice_client.get(address)
    refused = alice_client.get(address)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    assert refused.json()["code"] == "too_many_streams"
    close(first)  # before its first chunk was sent
    second = alice_client.get(address)
    assert second.status_code == 200
    close(second)


def test_a_stream_never_takes_more_than_a_quarter_of_the_threads(settings: Any) -> None:
    settings.STREAMS_OPEN, settings.WEB_THREADS = 100, 16
    assert streams.places() == 4


@pytest.mark.parametrize(("places", "of_one", "of_two"), [(0, 0, 0), (1, 1, 1), (2, 1, 2), (3, 1, 2), (5, 2, 4)])
def test_a_person_has_at_most_half_of_the_places_and_one_at_least(
    alice: User, root: User, places: int, of_one: int, of_two: int
) -> None:
    slots = WaitingSlots(lambda: places)
    assert sum(slots.take(alice) for _ in range(9)) == of_one
    assert sum(slots.take(root) for _ in range(9)) == of_two - of_one
    for _ in range(of_one):
        slots.release(alice)
    assert sum(slots.take(alice) for _ in range(9)) == of_one


def test_programs_without_a_login_count_as_one_person() -> None:
    slots = WaitingSlots(lambda: 4)
    assert [slots.take(AnonymousUser()) for _ in range(3)] == [True, True, False]
