"""The engine's lines, and what the log says about them."""

from __future__ import annotations

import json

import pytest

from analysis.runs.services import LogLine
from analysis.workers.engine_events import describe_probe, garbage_event, log_line, parse_event, progress_after
from engine.result import Outcome, Probe
from engine.units import GIB, MIB


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
    ("probe", "expected"),
    [
        (
            Probe(16, Outcome.FITS, steps=3, peak_allocated_bytes=int(1.7 * GIB), samples_per_second=9.84),
            "batch 16 fits: 1.7 GiB, 9.8 samples/s, 3 steps",
        ),
        (Probe(16, Outcome.FITS, peak_allocated_bytes=GIB, peak_reserved_bytes=2 * GIB), "batch 16 fits: 2.0 GiB"),
        (Probe(2, Outcome.FITS), "batch 2 fits"),
        (Probe(9, Outcome.OUT_OF_MEMORY, error_message="too much\nmore"), "batch 9: out of memory (too much)"),
        (Probe(9, Outcome.OUT_OF_MEMORY, error_message="out of memory: 2 B"), "batch 9: out of memory (2 B)"),
        (Probe(9, Outcome.OUT_OF_MEMORY), "batch 9: out of memory"),
        (Probe(9, Outcome.SIZE_LIMIT, error_message="int32"), "batch 9: size limit (int32)"),
    ],
)
def test_a_probe_is_described_in_a_line(probe, expected):
    assert describe_probe(probe) == expected


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
    event = {"event": "timing", "stage": "selection", "batch_sizes": [16, 32, 64], "seconds_left_at_most": 41.4}
    said = "comparing speed, round 6: 16, 32 and 64 in turns, 41 s left at most"
    assert parse_event(json.dumps({**event, "round": 6}).encode()) is not None
    assert log_line({**event, "round": 6}) == LogLine("info", said)
    assert log_line({**event, "round": 7}) is None


def progress_of(*events):
    progress = {}
    for seconds, event in enumerate(events):
        progress = progress_after(progress, {"seconds": float(seconds), **event})
    return progress


def test_the_progress_says_what_goes_on_and_when_each_phase_began():
    events = (
        {"event": "phase", "phase": "estimating"},
        {"event": "stage", "stage": "importing torch and transformers"},
    )
    begun = {"phases": {"estimating": 0.0}, "stage": "importing torch and transformers"}
    assert progress_of(*events) == begun
    searching = {"event": "phase", "phase": "searching"}
    probing = ({"event": "probe_started", "batch_size": 16}, {"event": "progress", "batch_size": 16, "step": 2})
    phases = {"estimating": 0.0, "searching": 2.0}
    assert progress_of(*events, searching, *probing) == {"phases": phases, "batch_size": 16, "step": 2}
    assert progress_of(*events, searching) == {"phases": phases}


def test_while_speeds_are_compared_the_round_stands_and_not_the_steps_of_its_blocks():
    timing = {"event": "timing", "round": 4, "batch_sizes": [16, 60], "seconds_left_at_most": 41.0}
    step = {"event": "progress", "purpose": "timing", "batch_size": 60, "step": 9}
    stage = {"event": "stage", "stage": "building the model in a new process"}
    assert progress_of(timing, step) == {"round": 4, "timing_seconds_left": 41.0}
    assert progress_of(timing, stage) == {"round": 4, "timing_seconds_left": 41.0, "stage": stage["stage"]}
    assert progress_of(timing | {"round": 1}) == {"round": 1, "timing_seconds_left": None}


def test_the_cards_of_an_estimate_are_counted():
    estimate = {"event": "estimate", "estimate": {}}
    events = ({"event": "phase", "phase": "predicting", "cards": 34}, estimate, estimate)
    assert progress_of(*events) == {"phases": {"predicting": 0.0}, "cards": 34, "cards_done": 2}
    assert progress_of(estimate) == {}  # of a measurement


def test_a_stage_is_a_line_of_the_log():
    line = log_line({"event": "stage", "stage": "tracing training steps as on NVIDIA L4"})
    assert line == LogLine("info", "Tracing training steps as on NVIDIA L4")
