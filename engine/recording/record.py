"""Runs a command as it is, with the recorder in its processes, and reads what these noted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from ..deaths.cause import explain, seen_by_its_process
from ..errors import SpecError
from ..facts.result import DeviceFacts
from ..machine.host import available_bytes, cpu_model, memory_bytes, oom_kills
from ..machine.parent import die_with_parent
from ..machine.scratch import scratch_folder
from ..text.from_json import from_json
from ..trainings.script.devices import card_facts
from ..trainings.script.start.environment import HOOK, HOOK_VARIABLE, python_path, visible_devices
from .recording import Process
from .result import WatchResult
from .spec import WatchSpec

FORWARDED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows has two of them
]
OF_A_TERMINAL = [number for number in FORWARDED if signal.Signals(number).name in ("SIGINT", "SIGHUP")]


def record(spec: WatchSpec, started_as: Mapping[str, Any]) -> WatchResult:
    """Run a command to its end; signals go on to it. Raises SpecError where it cannot be started."""
    with scratch_folder() as folder:
        hook = json.dumps({"records": True, "folder": folder})
        variables = {**os.environ, **visible_devices(spec.device, os.environ.get("CUDA_VISIBLE_DEVICES"))}
        variables |= {"PYTHONPATH": python_path(str(HOOK)), HOOK_VARIABLE: hook}
        began, killed_before = time.monotonic(), oom_kills()
        try:
            process = _started(spec.command, variables)
        except OSError as error:
            raise SpecError("command", f"{spec.command[0]} cannot be started: {error.strerror}") from error
        with _forwarding(process):
            status = process.wait()
        notes = list(_noted(Path(folder)))
        return WatchResult(
            spec=spec,
            environment={**started_as, **({"torch": notes[0]["torch"]} if notes else {})},
            status=status,
            total_seconds=time.monotonic() - began,
            oom_kills=oom_kills() - killed_before,
            free_bytes=available_bytes(),
            **(_trained(notes) if notes else {}),
        )


def _trained(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of the process that failed first, or else of the one with the highest peak."""
    failed = [each for each in notes if each["error"]]
    noted = min(failed, key=lambda each: each["error"]["at"]) if failed else max(notes, key=_peak_bytes)
    card = noted["card"]
    cpu = DeviceFacts("cpu", "cpu", cpu_model() or "CPU", memory_bytes())
    process = from_json(Process, noted)
    if noted["error"]:
        death = explain(noted["error"]["text"])
        death = seen_by_its_process(death, process.steps, was_evaluating=process.was_evaluating)
        process = replace(process, death=death)
    return {
        "device": cpu if card is None else card_facts(card, f"cuda:{card['index']}"),
        "device_count": len({each["card"] and (each["card"]["uuid"] or each["card"]["index"]) for each in notes}),
        "process": process,
    }


def _peak_bytes(noted: Mapping[str, Any]) -> int:
    return noted["peak_bytes"] or 0


def _started(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start it beside this process in a terminal, which sends Ctrl-C to both; else apart, to die with this process.

    A signal to a whole group, as of `timeout`, would otherwise reach the command twice.
    """
    if os.isatty(0) or not hasattr(os, "fork"):
        return subprocess.Popen(list(command), env=variables)
    return subprocess.Popen(list(command), env=variables, process_group=0, preexec_fn=die_with_parent)


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send signals on to the command, but for those that its terminal sends it."""

    def forward(number: int, _: FrameType | None) -> None:
        if number not in OF_A_TERMINAL or not os.isatty(0):
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _noted(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text())
