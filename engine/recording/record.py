"""Runs a command as it is, with the recorder in its processes, and reads what these noted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import SpecError
from ..machine.host import oom_kills
from ..machine.parent import die_with_parent
from ..machine.scratch import scratch_folder
from ..trainings.script.start.environment import HOOK, HOOK_VARIABLE, python_path, visible_devices

FORWARDED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows has two of them
]


OF_A_TERMINAL = [number for number in FORWARDED if signal.Signals(number).name in ("SIGINT", "SIGHUP")]


@dataclass(frozen=True, slots=True)
class Recording:
    """What a command did. `status` is its exit status, negative for a signal; `processes` are those that trained."""

    status: int
    oom_kills: int
    processes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def fullest(self) -> Mapping[str, Any] | None:
        """The process that failed first, or else the one with the highest peak."""
        failed = [each for each in self.processes if each["error"]]
        if failed:
            return min(failed, key=lambda each: each["error"]["at"])
        return max(self.processes, key=lambda each: each["peak_bytes"] or 0, default=None)


def record(command: Sequence[str], device: str) -> Recording:
    """Run a command to its end; signals go on to it. Raises SpecError where it cannot be started."""
    with scratch_folder() as folder:
        hook = json.dumps({"records": True, "folder": folder})
        variables = {**os.environ, **visible_devices(device, os.environ.get("CUDA_VISIBLE_DEVICES"))}
        variables |= {"PYTHONPATH": python_path(str(HOOK)), HOOK_VARIABLE: hook}
        killed_before = oom_kills()
        try:
            process = _started(command, variables)
        except OSError as error:
            raise SpecError("command", f"{command[0]} cannot be started: {error.strerror}") from error
        with _forwarding(process):
            status = process.wait()
        return Recording(status, oom_kills() - killed_before, tuple(_noted(Path(folder))))


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
