"""What is sent next, what never leaves the machine, and that each event arrives once and in order."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.report.protocol import (
    BACK_OFF_MOST,
    EVENTS_MOST,
    Announce,
    EventChannel,
    Events,
    Meaning,
    PortalAnswer,
    after,
    back_off_seconds,
    describe,
    meaning_of,
    next_call,
)
from engine.report.script_output import MARK, NO_INPUT, OTHER_TORCHVISION, quotes_script, without_output
from engine.text.own_words import SAID

FAULTS = ("none", "lost_request", "lost_answer", "garbage", "busy", "forgotten", "too_large", "cut")


class Server:
    """The portal's side of the contract, with nothing but a list."""

    def __init__(self) -> None:
        self.stored: list[int] | None = None

    def take(self, call: Announce | Events, events: list[int]) -> PortalAnswer:
        if isinstance(call, Announce):
            self.stored = [] if self.stored is None else self.stored
            return PortalAnswer(201, {"next": len(self.stored), "heartbeat_seconds": 15})
        if self.stored is None:
            return PortalAnswer(404)
        if call.first > len(self.stored):
            return PortalAnswer(409, {"next": len(self.stored)})
        self.stored += events[len(self.stored) - call.first :]
        return PortalAnswer(200, {"next": len(self.stored), "cancel_requested": False})


def spoil(fault: str, server: Server, call: Announce | Events, events: list[int]) -> PortalAnswer:
    if fault == "lost_request":
        return PortalAnswer(0, reason="connection refused")
    if fault == "busy":
        return PortalAnswer(503)
    if fault == "too_large" and len(events) > 1:
        return PortalAnswer(413)
    if fault == "forgotten":  # the portal's database was restored
        server.stored = None
    if fault == "cut" and server.stored:
        del server.stored[len(server.stored) // 2 :]
    answer = server.take(call, events)
    return {"lost_answer": PortalAnswer(0, reason="timed out"), "garbage": PortalAnswer(200)}.get(fault, answer)


@settings(deadline=None)
@given(st.lists(st.sampled_from(FAULTS), max_size=40), st.integers(0, 1_300), st.integers(1, 700))
def test_whatever_fails_each_event_arrives_once_and_in_order(faults: list[str], count: int, pace: int) -> None:
    server, channel, now, written = Server(), EventChannel(), 0.0, 0
    for _second in range(5_000):
        written = min(count, written + pace)
        now += 1.0
        call = next_call(channel, now=now, written=written)
        if call is None:
            continue
        events = list(range(written))[call.first : call.first + call.most] if isinstance(call, Events) else []
        answer = spoil(faults.pop(), server, call, events) if faults else server.take(call, events)
        channel = after(channel, call, answer, sent=len(events), now=now)
        assert len(events) <= EVENTS_MOST
        if not faults and server.stored == list(range(count)) and channel.next == count:
            break
    assert server.stored == list(range(count)), channel


@given(st.integers(1, 10_000), st.floats(0.5, 1.0))
def test_back_off_grows_and_stays_below_a_minute(failures: int, jitter: float) -> None:
    assert 0.5 <= back_off_seconds(failures, jitter=jitter) <= BACK_OFF_MOST
    assert back_off_seconds(failures + 1) >= back_off_seconds(failures)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 700),
    st.dictionaries(st.sampled_from(("next", "detail", "errors", "heartbeat_seconds")), st.none() | st.integers()),
)
def test_no_answer_is_beyond_the_sender(status: int, body: dict[str, object]) -> None:
    for call in (Announce(), Events(3, 500)):
        channel = after(EventChannel(is_open=True, next=3), call, PortalAnswer(status, body), sent=5, now=0.0)
        assert channel.next >= 0
        assert channel.is_refused or channel.failures or channel.is_open


@pytest.mark.parametrize("status", [301, 302, 308, 400, 401, 403, 405, 422])
def test_refusal_ends_the_live_report_without_another_try(status: int) -> None:
    channel = after(EventChannel(), Announce(), PortalAnswer(status, {"detail": "No."}), sent=0, now=0.0)
    assert channel.reason == f"refused with {status}: No."
    assert next_call(channel, now=1e9, written=5) is None


@pytest.mark.parametrize("status", [0, 408, 429, 500, 502, 503, 504])
def test_portal_that_is_away_is_tried_again(status: int) -> None:
    channel = after(EventChannel(), Announce(), PortalAnswer(status), sent=0, now=0.0)
    assert next_call(channel, now=0.5, written=5) is None
    assert next_call(channel, now=61.0, written=5) == Announce()


def test_portal_says_itself_when_to_come_back() -> None:
    channel = after(EventChannel(), Announce(), PortalAnswer(429, retry_after_seconds=120), sent=0, now=0.0)
    assert next_call(channel, now=119.0, written=0) is None
    assert next_call(channel, now=120.0, written=0) == Announce()


def test_events_wait_for_the_heartbeat_while_seconds_are_measured() -> None:
    channel = EventChannel(is_open=True, called_at=0.0, heartbeat_seconds=15.0)
    assert next_call(channel, now=2.0, written=3) == Events(0, EVENTS_MOST)
    assert next_call(channel, now=14.0, written=3, is_quiet=True) is None
    assert next_call(channel, now=15.0, written=3, is_quiet=True) == Events(0, EVENTS_MOST)


def test_heartbeat_is_sent_when_nothing_happens() -> None:
    channel = EventChannel(is_open=True, next=3, called_at=0.0, heartbeat_seconds=15.0)
    assert next_call(channel, now=14.0, written=3) is None
    assert next_call(channel, now=15.0, written=3) == Events(3, 0)
    assert next_call(channel, now=99.0, written=3, hurry=True) is None


def test_interval_that_no_portal_means_is_not_followed() -> None:
    for given_interval, taken in ((0, 1.0), (1e9, 300.0), ("soon", 15.0), (float("nan"), 15.0), (True, 15.0)):
        answer = PortalAnswer(201, {"next": 0, "heartbeat_seconds": given_interval})
        assert after(EventChannel(), Announce(), answer, sent=0, now=0.0).heartbeat_seconds == taken


def test_contradicted_document_names_its_fields_with_both_values() -> None:
    errors = [{"field": "boundary.largest_batch_size", "claimed": 64, "allowed": 32, "detail": "..."}]
    answer = PortalAnswer(422, {"detail": "The document claims more.", "errors": errors})
    assert meaning_of(answer) is Meaning.REFUSED
    assert describe(answer) == "refused with 422: boundary.largest_batch_size: 64, allowed 32"


def test_many_contradictions_are_a_line_that_can_be_read() -> None:
    point = dict.fromkeys((f"figure_{number}" for number in range(20)), 1.5)
    errors = [{"field": f"points[{number}]", "claimed": point, "allowed": None} for number in range(30)]
    said = describe(PortalAnswer(422, {"errors": errors}))
    assert said.endswith("and 27 more")
    assert len(said) < 400


def test_contradictions_that_the_portal_does_not_list_are_counted() -> None:
    errors = [{"field": f"kinds.{number}", "claimed": 1, "allowed": None} for number in range(10)]
    line = describe(PortalAnswer(422, {"errors": errors, "impossible_fields": 300}))
    assert line.endswith("kinds.2: 1, allowed None and 297 more")


def test_text_of_the_portal_cannot_steer_a_terminal() -> None:
    assert describe(PortalAnswer(403, {"detail": "\x1b[2Jcleared\r\n"})) == "refused with 403: [2Jcleared"
    assert len(describe(PortalAnswer(403, {"detail": "x" * 10_000}))) < 400


BEHIND = NO_INPUT
PLACE = "\n  Its whole output: /home/ann/failed-start.log\n  To run it by hand: cd /x && python t.py 'a\nb'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("out of memory: 2 B", "out of memory: 2 B"),
        (f"ended with status 1{MARK}patient alice", "ended with status 1; its output stayed on node7"),
        (f"failed: ValueError: {SAID}patient alice has 42", "failed: ValueError: its output stayed on node7"),
        (f"failed: ValueError: {SAID}alice\nis 42{BEHIND}", f"failed: ValueError: its output stayed on node7{BEHIND}"),
        (f"E: {SAID}alice{OTHER_TORCHVISION}{BEHIND}", f"E: its output stayed on node7{OTHER_TORCHVISION}{BEHIND}"),
        (f"E: {SAID}alice{NO_INPUT}", f"E: its output stayed on node7{NO_INPUT}"),
        (f"failed: E: {SAID}alice{BEHIND}{MARK}\n    bob{PLACE}", f"failed: E: its output stayed on node7{BEHIND}"),
        (f"failed: E: {SAID}al{MARK}ice", "failed: E: its output stayed on node7"),
        (f"ended{MARK}a{BEHIND} alice {SAID}b", "ended; its output stayed on node7"),
    ],
)
def test_only_what_memorymark_itself_says_is_sent(text: str, shown: str) -> None:
    content = {"probes": [{"error_message": text, "batch_size": 9}], "kept": (None, 1.5)}
    expected = {"probes": [{"error_message": shown, "batch_size": 9}], "kept": [None, 1.5]}
    assert without_output(content, "node7") == expected
    assert quotes_script(json.dumps(content).encode()) is (text != shown)


def test_people_of_the_same_host_are_told_where_the_output_lies() -> None:
    text = f"failed: E: {SAID}alice{BEHIND}{MARK}\n    bob\n    To run it by hand: x{PLACE}"
    assert without_output(text, "vm", names_place=True) == f"failed: E: its output stayed on vm{BEHIND}{PLACE}"
    without_log = PLACE[PLACE.index("\n  To run") :]
    shown = without_output(f"ended{MARK}none{without_log}", "vm", names_place=True)
    assert shown == f"ended; its output stayed on vm{without_log}"
    assert without_output(f"ended{MARK}a | b", "vm", names_place=True) == "ended; its output stayed on vm"
