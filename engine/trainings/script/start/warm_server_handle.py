"""Starts a function's training by a server that has imported its module once, which must open no driver."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

from ....errors import CommandUntunable
from ....machine.device_lock import inherited_locks
from ....machine.watch import waiting_policy
from ..spec import WARM, FunctionSpec, TuneSpec
from .environment import HOOK_VARIABLE, environment_of, python_path
from .launch import Begin, Place, Running, Watching

END_SECONDS = 10.0
GONE = {"event": "gone"}


def is_warm(spec: TuneSpec | FunctionSpec) -> TypeGuard[FunctionSpec]:
    return isinstance(spec, FunctionSpec) and spec.starting == WARM


@contextmanager
def warm_starts(spec: TuneSpec | FunctionSpec) -> Iterator[Begin | None]:
    """Give a `Begin` by a server that ends with the context; None where the spec wants no warm starts."""
    if not is_warm(spec):
        yield None
        return
    with WarmServer(spec) as server:
        yield server.begin


class WarmServer:
    """Keep one server process with at most one start forked from it, and replace a server that has ended."""

    def __init__(self, spec: FunctionSpec) -> None:
        self.spec = spec
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._pending = b""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WarmServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._log.close()

    def begin(self, batch_size: int, watching: Watching, place: Place) -> Running:
        """Request a start. The returned start reads what becomes of it."""
        process = self._process = self._process or self._started()
        files = {"notes": str(place.notes), "out": str(place.out), "log": str(place.log)}
        request = {"batch_size": batch_size, "watching": asdict(watching), **files}
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # `read` tells that the server is gone
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        return _Served(self, place)

    def read(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message within `seconds`, `GONE` where the server is; None where nothing came."""
        if self._process is None or self._process.stdout is None:
            return GONE
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            if not select.select([descriptor], [], [], seconds)[0]:
                return None
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                return GONE
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def output(self) -> bytes:
        self._log.seek(0)
        return self._log.read()

    def close(self, patience_seconds: float = 0.0) -> int | None:
        """End the server; its exit status where it ends by itself in time, negative for a signal."""
        process, self._process, self._pending = self._process, None, b""
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(patience_seconds)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return status

    def _started(self) -> subprocess.Popen[bytes]:
        spec = self.spec
        path = python_path(*spec.python_path)
        # a module that calls tune while it is imported is told so by the hook's variable
        own = {**waiting_policy(spec.device), "PYTHONPATH": path, HOOK_VARIABLE: "{}"}
        return subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.warm_server", json.dumps(asdict(spec)), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment_of(spec.device, spec.current_batch_size), **own},
            start_new_session=True,
            pass_fds=inherited_locks(),
        )


@dataclass
class _Served:
    server: WarmServer
    place: Place
    pid: int | None = None
    status: int | None = None
    is_over: bool = False

    def has_ended(self) -> bool:
        while not self.is_over and (message := self.server.read(0.0)) is not None:
            self._take(message)
        return self.is_over

    def end(self) -> int | None:
        """Kill the start and what is left of its group; its exit status where it had ended by itself."""
        if self.has_ended():
            return self.status
        if self.pid is None:  # the module is still being imported
            self.server.close()
            return None
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
            os.killpg(self.pid, signal.SIGKILL)
        until = time.monotonic() + END_SECONDS
        while not self.is_over and time.monotonic() < until:
            if (message := self.server.read(END_SECONDS)) is not None:
                self._take(message)
        return None

    def _take(self, message: dict[str, Any]) -> None:
        if message["event"] == "refused":
            raise CommandUntunable("cannot_fork", message["message"])
        if message["event"] == "started":
            self.pid = message["pid"]
        elif message["event"] == "ended":
            self.status, self.is_over = message["status"], True
        else:
            self.place.log.write_bytes(self.server.output())
            self.status, self.is_over = self.server.close(END_SECONDS), True
