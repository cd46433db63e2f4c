"""Children are started again when they die, all end in time; and the engine's lines, as the log says them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from analysis.runs.services import LogLine
from analysis.workers import process_manager
from analysis.workers.engine_events import garbage_event, log_line, parse_event
from analysis.workers.fork_signs import StopPipe
from analysis.workers.process_manager import Child, ProcessManager
from engine.text.units import MIB
from tests.waiting import wait_until


def shell(script: str, **environment: str) -> Child:
    return Child("test", ["sh", "-c", script], environment)


@pytest.fixture
def keeper() -> Iterator[ProcessManager]:
    keeper = ProcessManager()
    yield keeper
    keeper.kill()


def looks_until(keeper: ProcessManager, holds: Callable[[], bool]) -> None:
    def look_and_ask() -> bool:
        keeper.look()
        return holds()

    wait_until(look_and_ask)


def test_a_child_that_dies_is_started_again(keeper, monkeypatch):
    monkeypatch.setattr(process_manager, "_BACK_OFF_SECONDS", (0.05,))
    child = shell("exec sleep 60")
    keeper.start([child])
    first = child.process.pid
    child.process.kill()
    looks_until(keeper, lambda: child.is_alive and child.process.pid != first)
    assert child.deaths_in_a_row == 1


def test_a_child_that_keeps_dying_is_started_later_and_later(keeper, monkeypatch):
    monkeypatch.setattr(process_manager, "_BACK_OFF_SECONDS", (0.02, 0.04, 60.0))
    child = shell("exit 3")
    keeper.start([child])
    looks_until(keeper, lambda: child.deaths_in_a_row == 3)
    assert child.restart_at > time.monotonic() + 50
    assert child.exit_status == 3


def test_a_child_that_lived_long_starts_its_count_anew(keeper, monkeypatch):
    monkeypatch.setattr(process_manager, "_STEADY_SECONDS", 0.0)
    monkeypatch.setattr(process_manager, "_BACK_OFF_SECONDS", (0.01, 60.0))
    child = shell("exit 0")
    child.deaths_in_a_row = 5
    keeper.start([child])
    looks_until(keeper, lambda: child.deaths_in_a_row == 1)


def test_children_are_asked_to_end_and_do(keeper, tmp_path):
    said = tmp_path / "said"
    child = shell(f"trap 'echo bye > {said}; exit 0' TERM; echo > {tmp_path / 'ready'}; while :; do sleep 0.05; done")
    keeper.start([child])
    wait_until((tmp_path / "ready").exists)
    keeper.stop(seconds=5)
    assert (child.exit_status, said.read_text()) == (0, "bye\n")


def test_a_child_that_will_not_end_is_killed_with_all_it_started(keeper, tmp_path):
    beating = tmp_path / "beating"
    child = shell(f"trap '' TERM; (while :; do echo >> {beating}; sleep 0.02; done) & wait; sleep 60")
    keeper.start([child])
    wait_until(beating.exists)
    started_at = time.monotonic()
    keeper.stop(seconds=0.2)
    assert time.monotonic() - started_at < 2
    assert child.exit_status == -9
    size = beating.stat().st_size
    time.sleep(0.1)
    assert beating.stat().st_size == size


def test_a_child_sees_its_own_environment(keeper):
    child = shell('test "$MEMORYMARK_LOCAL" = 1', MEMORYMARK_LOCAL="1")
    keeper.start([child])
    assert child.process.wait(5) == 0


def test_a_lifeline_is_cut_once_and_for_all():
    stop_pipe = StopPipe()
    assert not stop_pipe.is_stopping()
    stop_pipe.stop()
    stop_pipe.stop()
    assert stop_pipe.is_stopping()


def test_a_fork_learns_of_the_death_of_the_main_process():
    """In a process of its own: the fork outlives its parent, sees the end, and says so."""
    script = (
        "import os, sys\n"
        "from analysis.workers.fork_signs import StopPipe\n"
        "import select\n"
        "stop_pipe = StopPipe()\n"
        "if os.fork():\n"
        "    os._exit(0)\n"
        "select.select([stop_pipe._reading], [], [], 10)\n"
        "print(stop_pipe.is_stopping(), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, env={**os.environ}, capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr


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
            {"event": "device", "device": {"device": "cuda:0", "name": "A card", "limit_bytes": 512 * MIB}},
            LogLine("info", "A card (cuda:0), limit 512.0 MiB"),
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
    event |= {"rounds_expected": 12, "seconds_left": 41.4, "seconds_left_at_most": 90.0}
    assert parse_event(json.dumps({**event, "round": 5}).encode()) is not None
    assert log_line({**event, "round": 5}) == LogLine("info", "round 5 of about 12, about 40 s left")
    assert log_line({**event, "round": 6}) is None
