"""Runs one part in a process of its own, within a time limit, and returns what it saw. Opens no card itself."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.card_experiments import watching
from benchmarks.card_experiments.answers import ROOT
from benchmarks.card_experiments.setting import Part, Setting, Watch

LAST_WORDS = 600
END_SECONDS = 20.0


@dataclass
class _Run:
    """A program and its lines."""

    lines: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    status: int | None = None
    timed_out: bool = False
    errors: str = ""


def run_part(part: Part, setting: Setting, seconds: float) -> dict[str, Any]:
    """Run the part, for its seconds at most. Whatever goes wrong is part of what was seen."""
    with ExitStack() as stack:
        watch = stack.enter_context(_watching(part, setting))
        run = _run(part, seconds, watch.notice)
    seen = _seen(part, run, seconds) | watch.seen()
    return seen | {"exit_status": run.status}


def _seen(part: Part, run: _Run, seconds: float) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    if part.is_engine_run:
        result = next((e["result"] for e in run.events if e["event"] == "result"), None)
        seen["result"] = result
        if result is not None:
            seen["seconds"] = result["timings"]["total_seconds"]
        else:
            seen["probes"] = [e["probe"] for e in run.events if e["event"] == "probe"]
            seen["error"] = _error_of(run)
    elif run.status in (0, 1) and run.lines and run.lines[-1].startswith("{"):  # 1: it answered, and does not like it
        seen = json.loads(run.lines[-1])
    else:
        seen["error"] = _error_of(run)
    if run.timed_out:
        seen |= {"timed_out": True, "error": f"had not ended after {seconds:.0f} s"}
    return seen


def _error_of(run: _Run) -> str:
    said = next((e["error"]["message"] for e in run.events if e["event"] == "error"), None)
    return said or f"ended with status {run.status}: {run.errors.strip()[-LAST_WORDS:]}"


def _run(part: Part, seconds: float, notice: Callable[[dict[str, Any]], None]) -> _Run:
    run, deadline = _Run(), time.monotonic() + seconds
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, *part.command],
            cwd=ROOT,
            env={**os.environ, **part.environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # so that all of it can be ended
        )
        try:
            for line in _lines(process, deadline):
                run.lines.append(line)
                if part.is_engine_run:
                    run.events.append(json.loads(line))
                    notice(run.events[-1])
            run.timed_out = process.poll() is None and time.monotonic() >= deadline
        finally:
            _end(process)
        run.status = process.returncode
        errors.seek(0)
        run.errors = errors.read()
    return run


def _lines(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """The lines of standard output as they come, until it ends or the time is up."""
    assert process.stdout is not None
    descriptor, pending = process.stdout.fileno(), b""
    while (remaining := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], remaining)[0]:
            return
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            break
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line.decode() for line in lines if line.strip())
    try:
        process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and all it started; the engine ends its sessions by itself on SIGTERM."""
    assert process.stdout is not None
    process.stdout.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def _watching(part: Part, setting: Setting) -> Iterator[watching.Watcher]:
    uuid = setting.machine.uuid
    if part.watch is Watch.TENANT:
        with watching.Tenant(setting.device, setting.tenant_bytes) as tenant:
            yield tenant
    elif part.watch is Watch.CLOCKS:
        with watching.Clocks(uuid) as clocks:
            yield clocks
    elif part.watch is Watch.PROCESS_MEMORY:
        with watching.SoakMemory(uuid) as memory:
            yield memory
    else:
        yield watching.Watcher()
