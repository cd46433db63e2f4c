"""Starts, feeds, times out and replaces the worker process. Nothing else does.

A session is one process that opened the device and the model. `WorkerHandle.probe` returns a Probe even when the
kernel's out-of-memory killer ended the session; any other death raises WorkerDied, silence WorkerFailed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pynvml

from ...errors import EngineError, TimeIsUp, WorkerDied, WorkerFailed
from ...facts.host_memory import KILLED_TYPE
from ...facts.losses import Losses
from ...facts.memory_breakdown import MemoryBreakdown
from ...facts.progress import Progress, no_progress
from ...facts.result import FOREIGN_NOTABLE_BYTES, DeviceFacts, Outcome, Probe
from ...machine import nvml
from ...machine.device_lock import inherited_locks
from ...machine.host import oom_kills
from ...machine.watch import waiting_policy
from ...program import IMPORTED_FROM
from ...race.speed.comparison import TimedBlock
from ...settings.spec import RunSpec
from ...text.masking import masked_text
from ...text.noise import is_noise
from ...text.printable import printable

WORKER_COMMAND = (sys.executable, "-m", f"{__package__}.process")
START_SECONDS = 300.0
OPEN_SECONDS = 900.0
END_SECONDS = 30.0
STOP_SECONDS = 1.0
STDERR_BYTES = 2_000
CRASHES = tuple(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT))
"""Signals by which a failing library ends its own process; SIGKILL and SIGTERM come from outside."""
EXPANDABLE = "expandable_segments:True"
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Those that configure torch's allocator: the first that is set counts, and an older torch has the last alone."""
KILLED = "the kernel's out-of-memory killer ended the worker process"


class WorkerHandle:
    """One waiting process with everything imported, and at most one session forked from it."""

    def __init__(self, spec: RunSpec, variables: Mapping[str, str] | None = None) -> None:
        self.spec = spec
        self.variables = dict(variables or {})  # of the environment of the worker
        self.import_seconds = 0.0
        self.model_seconds = 0.0
        self.sessions = 0
        self.report: Callable[[str], None] = lambda stage: None  # called when one begins: importing, building
        self.device: DeviceFacts | None = None
        self.beside_bytes: int | None = None  # memory of others that the last session found when it opened
        self._facts: DeviceFacts | None = None
        self.environment: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._pending = b""
        self._session_pid: int | None = None
        self._session_probes = 0

    def __enter__(self) -> WorkerHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_fresh(self) -> bool:
        return self._session_probes == 0

    def trace(self, seconds: float) -> dict[str, Any]:
        """Trace what steps allocate, as `BatchModel.to_dict()`. Raises TimeIsUp and the worker's errors."""
        assert self._session_pid is None
        self._start_if_needed()
        self.report("tracing training steps on tensors without data")
        try:
            self._session_pid = self._ask({"do": "trace", "spec": self.spec.to_dict()}, "tracing", END_SECONDS)["pid"]
        except TimeIsUp:
            self._end_process()
            raise
        model: dict[str, Any] = self._read("traced", seconds)["model"]
        self._await_end()
        return model

    def facts(self) -> DeviceFacts:
        """Return the facts of the device, which name its lock, before it is used. Raises DeviceUnavailable."""
        self._start_if_needed()
        assert self._facts is not None
        return self._facts

    def open(self) -> None:
        """Open a session unless one is open. Raises any EngineError of the worker."""
        if self._session_pid is not None:
            return
        self._start_if_needed()
        self.report("building the model in a new process")
        request = {
            "do": "open",
            "spec": self.spec.to_dict(),
            "describe": not self.environment,
            "idle_beside_bytes": self.beside_bytes,
        }
        try:
            opened = self._ask(request, "opened", OPEN_SECONDS)
        except TimeIsUp as exc:
            raise WorkerFailed(f"the model was not ready within {OPEN_SECONDS:.0f} s") from exc
        self._session_pid, self._session_probes = opened["pid"], 0
        self.sessions += 1
        self.model_seconds += opened["model_seconds"]
        self.environment = opened.get("environment") or self.environment
        found = DeviceFacts.from_dict(opened["device"])
        self.device = _facts_before_use(self.device, found)
        self.beside_bytes = found.beside_bytes  # another process that stays is waited for only once

    def probe(
        self, batch_size: int, *, steps: int, with_kinds: bool, seconds: float, progress: Progress = no_progress
    ) -> Probe:
        """Run one probe in the open session; a refusal ends it. Raises TimeIsUp, WorkerFailed or WorkloadFailed."""
        if self.spec.torch_compile and not self.is_fresh:
            self.close()  # this size must not find what was compiled for another one
        self.open()
        fresh = self.is_fresh
        request = {"do": "probe", "batch_size": batch_size, "steps": steps, "with_kinds": with_kinds}
        found = self._train(request, seconds, progress)
        return replace(Probe.from_dict(found), fresh_process=fresh)

    def time(
        self, batch_size: int, *, block_seconds: float, seconds: float, progress: Progress = no_progress
    ) -> TimedBlock:
        """Time a block of steps in the open session, within `seconds`. A refused size ends the session."""
        self.open()
        request = {"do": "time", "batch_size": batch_size, "seconds": block_seconds}
        return TimedBlock.from_dict(self._train(request, seconds, progress))

    def _train(self, request: dict[str, Any], seconds: float, progress: Progress) -> dict[str, Any]:
        """Return what training a size gave in the open session, which a refusal ends, also by the kernel."""
        self._session_probes += 1
        kills, started = oom_kills(), time.monotonic()
        try:
            found: dict[str, Any] = self._answer(request, seconds, progress)
        except WorkerFailed as error:
            if error.status != -signal.SIGKILL or oom_kills() <= kills:
                raise
            found = {"batch_size": request["batch_size"], "outcome": Outcome.OUT_OF_MEMORY}
            found |= {"error_type": KILLED_TYPE, "error_message": KILLED, "wall_seconds": time.monotonic() - started}
        if found["outcome"] != Outcome.FITS:
            self.close()
        return found

    def losses(self, batch_size: int, *, steps: int, seconds: float, progress: Progress = no_progress) -> Losses:
        """Return the losses of the first steps of a new session, which ends with them."""
        return Losses.from_dict(self._answer_of_new_session("losses", batch_size, steps, seconds, progress))

    def explain(
        self, batch_size: int, *, steps: int, seconds: float, progress: Progress = no_progress
    ) -> MemoryBreakdown | None:
        """Return what fills the memory at this size, from a new session; None where the device does not report it."""
        found = self._answer_of_new_session("explain", batch_size, steps, seconds, progress)
        return None if found is None else MemoryBreakdown.from_dict(found)

    def _answer_of_new_session(self, do: str, batch_size: int, steps: int, seconds: float, progress: Progress) -> Any:
        self.close()
        self.open()
        answer = self._answer({"do": do, "batch_size": batch_size, "steps": steps}, seconds, progress)
        self.close()
        return answer

    def turn_to(self, spec: RunSpec) -> None:
        """Take other settings of the same model on the same device: the next session has them."""
        self.close()
        if allocator_variable(spec) != allocator_variable(self.spec):  # torch reads it when it is imported
            self._end_process()
        self.spec = spec

    def close(self) -> None:
        """End the session, so that the next probe runs in an unused process."""
        if self._session_pid is None:
            return
        self._kill_session()
        self._await_end()

    def stop(self) -> None:
        """End everything. Safe to call at any time."""
        self._kill_session()
        self._forget_session()
        self._end_process()
        self._stderr.close()

    def _end_process(self) -> None:
        """Close the waiting process's input, so that it ends and reaps its session; kill it if it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start_if_needed(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._end_process()
        if self._process is not None:
            return
        self.report(f"importing torch and {self.spec.workload.library}")
        self._pending = b""
        if self.spec.device != "cpu":
            nvml.keep_driver_loaded(pynvml)
        self._process = subprocess.Popen(
            [*WORKER_COMMAND, self.spec.model, self.spec.device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            # sessions are forked from this process, so counting cards must not start CUDA in it
            env={
                **os.environ,
                **allocator_variable(self.spec),
                **waiting_policy(self.spec.device),
                **self.variables,
                "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            },
            pass_fds=inherited_locks(),  # held while any process of the run lives
            cwd=IMPORTED_FROM,
        )
        try:
            ready = self._read("ready", START_SECONDS)
        except TimeIsUp as exc:
            raise WorkerFailed(f"the worker had not imported torch after {START_SECONDS:.0f} s") from exc
        self.import_seconds += ready["import_seconds"]
        self._facts = DeviceFacts.from_dict(ready["device"])

    def _ask(
        self, request: dict[str, Any], answer: str, seconds: float, progress: Progress = no_progress
    ) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as exc:
            self._forget_session()
            raise self._error_of_end({"event": "gone"}) from exc
        return self._read(answer, seconds, progress)

    def _answer(self, request: dict[str, Any], seconds: float, progress: Progress) -> Any:
        return self._ask(request, "answer", seconds, progress)["answer"]

    def _read(self, wanted: str, seconds: float, progress: Progress = no_progress) -> dict[str, Any]:
        """Read the next message that is not progress; it must be `wanted`. Kills the session when time is up."""
        deadline = time.monotonic() + seconds
        while (message := self._read_message(deadline)) is not None and message["event"] == "progress":
            progress(message["stage"], message["step"])
        if message is None:
            self._kill_session()
            self._await_end()
            raise TimeIsUp(f"no answer within {seconds:.0f} s")
        if message["event"] == wanted:
            return message
        if message["event"] == "error":
            if self._read_line(time.monotonic() + END_SECONDS) == b"":  # a worker that served it without a fork ends
                self._end_process()
            self._forget_session()
            raise EngineError.from_dict(message["error"])
        self._forget_session()
        raise self._error_of_end(message)

    def _read_message(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message; the event "gone" when the worker closed its end, None when the deadline passed."""
        line = self._read_line(deadline)
        if line is None:
            return None
        message: dict[str, Any] = json.loads(line) if line else {"event": "gone"}
        return message

    def _read_line(self, deadline: float) -> bytes | None:
        """Return one line; empty when the worker closed its end, None when the deadline passed first."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                return None
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                return b""
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _await_end(self) -> None:
        """Read on after a kill until the session has ended, skipping an answer that came just before.

        Where sessions are not forked, the worker itself ended, and the next session needs a new one.
        """
        deadline = time.monotonic() + END_SECONDS
        while self._session_pid is not None:
            line = self._read_line(deadline)
            if not line:
                self._end_process()
            if not line or json.loads(line)["event"] == "ended":
                self._forget_session()

    def _kill_session(self) -> None:
        if self._session_pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._session_pid, signal.SIGKILL)

    def _forget_session(self) -> None:
        self._session_pid, self._session_probes = None, 0

    def _error_of_end(self, message: dict[str, Any]) -> WorkerFailed:
        status: int | None = message.get("status")  # negative for a signal
        if status is None and self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(STOP_SECONDS)
        kind = WorkerFailed
        ending = "sent an unexpected message" if status is None else f"ended with status {status}"
        if status is not None and status < 0:
            kind, ending = WorkerDied, f"was ended by {signal.Signals(-status).name}"
        error = kind(f"the worker process {ending}{self._last_lines()}")
        error.status = status
        return error

    def _last_lines(self) -> str:
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - STDERR_BYTES, 0))
        lines = self._stderr.read().decode(errors="replace").splitlines()
        last = [line for line in lines if not is_noise(line)]
        return f"; its last output: {' | '.join(masked_text(printable(line)) for line in last[-3:])}" if last else ""


def allocator_variable(spec: RunSpec) -> dict[str, str]:
    """Return the variable that configures torch's allocator at its start, including the user's own settings."""
    if not spec.expandable_segments:
        return {}
    return {ALLOCATOR_VARIABLES[0]: with_own_allocator_settings(EXPANDABLE)}


def with_own_allocator_settings(settings: str) -> str:
    """Return settings of torch's allocator behind those that the user has in the environment."""
    given = next(filter(None, map(os.environ.get, ALLOCATOR_VARIABLES)), None)
    return f"{given},{settings}" if given else settings


def _facts_before_use(known: DeviceFacts | None, found: DeviceFacts) -> DeviceFacts:
    """Return the device as before this run used it, marked as shared once another process uses it.

    Memory still being taken back may seem another's: others count only with more in use than beside the first session.
    """
    if known is None:
        return found
    if known.is_shared or not found.is_shared:
        return known
    has_grown = (found.beside_bytes or 0) > (known.beside_bytes or 0) + FOREIGN_NOTABLE_BYTES
    return replace(found, beside_bytes=known.beside_bytes) if found.beside_bytes is None or has_grown else known
