"""Each process of a real engine is ended from outside in mid-run: the run gets another attempt."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.models import Run, State
from analysis.runs.services import LogLine
from analysis.workers.device_lock import device_lock
from analysis.workers.supervisor import supervise
from engine.text.units import MIB
from tests.factories import make_claimed_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, and the session is a fork"),
]
PARTS = ("engine", "worker", "session")
ENDS = [
    ("engine", signal.SIGTERM, "engine_killed"),
    ("worker", signal.SIGTERM, "engine_worker_died"),
    ("session", signal.SIGKILL, "engine_worker_died"),
]


def processes_of_engine() -> dict[str, int]:
    found, parent = {}, os.getpid()
    for part in PARTS:
        parent = next(pid for pid in children(parent) if "engine" in Path(f"/proc/{pid}/cmdline").read_text())
        found[part] = parent
    return found


def children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def at_first_probe(do: Callable[[], None]) -> Callable[[LogLine], None]:
    seen: list[str] = []

    def hear(line: LogLine) -> None:
        if " fits: " in line.message and not seen:
            seen.append(line.message)
            do()

    return hear


@pytest.mark.parametrize(("part", "number", "cause"), ENDS)
def test_a_run_whose_engine_is_ended_from_outside_is_queued_again(part: str, number: signal.Signals, cause: str):
    run = make_claimed_run(sequence_length=32, memory_limit_bytes=100 * MIB)
    kill = at_first_probe(lambda: os.kill(processes_of_engine()[part], number))
    with device_lock(run.device) as descriptor:
        supervise(run, keep_open=[descriptor], on_line=kill)
    run = Run.objects.get(pk=run.pk)
    attempt = run.attempts.get()
    assert (run.state, attempt.cause, attempt.counted) == (State.QUEUED, cause, True), attempt.message
    assert number.name in attempt.message or signal.strsignal(number) in attempt.message
    assert run.measurements.exists()
