"""The engine's lines, and what the log says about them."""

import json

import pytest

from analysis.runs.services import LogLine
from analysis.workers.engine_events import garbage_event, log_line, parse_event
from engine.text.units import MIB


def test_an_event_is_read_from_its_line():
    assert parse_event(b'{"event": "phase", "phase": "soaking"}\n') == {"event": "phase", "phase": "soaking"}


@pytest.mark.parametrize(
    "line",
    [b"", b"text", b"[]", b'"probe"', b'{"event": "unheard-of"}', b'{"event": ["probe"]}', b'{"no": "event"}'],
)
def test_a_line_that_is_no_event_is_none(line):
    assert parse_event(line) is None


@pytest.mark.parametrize(
    "value", [b"NaN", b"Infinity", b'"\\ud800"', b"[" * 100_000], ids=["nan", "infinity", "surrogate", "deep"]
)
def test_what_a_database_cannot_store_is_no_event(value):
    assert parse_event(b'{"event": "log", "message": ' + value + b"}") is None


def test_a_nul_in_a_text_is_dropped():
    assert parse_event(b'{"event": "log", "message": "a\\u0000b"}') == {"event": "log", "message": "ab"}


def test_garbage_is_shown_short():
    message = garbage_event(b"\xff" + b"x" * 5000)["message"]
    assert message.startswith("Skipped a line that is not an event: \ufffdxxx")
    assert len(message) < 250


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"event": "log", "level": "warning", "message": "hot"}, LogLine("warning", "hot")),
        ({"event": "log", "level": "shout", "message": "hot"}, LogLine("info", "hot")),
        ({"event": "phase", "phase": "timing"}, LogLine("info", "Comparing speeds")),
        ({"event": "phase", "phase": "new"}, LogLine("info", "New")),
        (
            {"event": "device", "device": {"name": "A card", "capacity_bytes": 512 * MIB}},
            LogLine("info", "Device: A card, 512.0 MiB"),
        ),
        ({"event": "error", "error": {"message": "no"}}, LogLine("error", "no")),
        ({"event": "probe_started", "batch_size": 4}, None),
        ({"event": "log"}, None),
    ],
)
def test_an_event_becomes_a_line_of_the_log(event, line):
    assert log_line(event) == line


def test_every_fifth_round_of_the_comparison_of_speeds_is_a_line():
    event = {"event": "timing", "stage": "selection", "batch_sizes": [16, 32, 64]}
    said = "comparing speed, round 6 of about 12: 16, 32 and 64 in turns, about 40 s left"
    event |= {"rounds_expected": 12, "seconds_left": 41.4, "seconds_left_at_most": 90.0}
    assert parse_event(json.dumps({**event, "round": 6}).encode()) is not None
    assert log_line({**event, "round": 6}) == LogLine("info", said)
    assert log_line({**event, "round": 7}) is None
