"""`manage.py up` from an empty folder, with the real engine: starts, measures, survives kills, leaves nothing."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from django.conf import settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds its processes through /proc"),
]

T = TypeVar("T")
QUICK = {"model_name": "bert-tiny", "device": "cpu", "max_batch_size": 2, "current_batch_size": 1, "soak_steps": 1}
LONG = {"model_name": "bert-tiny", "device": "cpu", "memory_limit_bytes": "4GiB"}


class Installation:
    """One running `up` with its own data folder."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self.output = folder, folder / "output.txt"
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(self.port)],
                env={
                    **kept,
                    "MEMORYMARK_DATA_DIR": str(folder),
                    "MEMORYMARK_LOCK_DIR": str(folder / "locks"),
                    "MEMORYMARK_ANALYZE_WAIT_SECONDS": "600",
                },
                cwd=settings.BASE_DIR,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ask(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json", **headers})
        with urlopen(request, timeout=700) as answer:
            return dict(json.load(answer))

    def processes(self, word: str = "") -> list[int]:
        """List the processes of this installation: all inherit its data folder, and the engine its descriptors."""
        return [pid for pid, line in processes_with(str(self.folder)) if word in line]

    def state(self, run_id: int) -> str:
        with self._database() as database:
            return str(database.execute("SELECT state FROM analysis_run WHERE id=?", [run_id]).fetchone()[0])

    def attempts(self, run_id: int) -> list[str]:
        with self._database() as database:
            found = database.execute("SELECT cause FROM analysis_attempt WHERE run_id=? ORDER BY number", [run_id])
            return [cause for (cause,) in found]

    def cancel(self, run_id: int) -> None:
        with self._database() as database:
            database.execute("UPDATE analysis_run SET cancel_requested=1 WHERE id=?", [run_id])

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "memorymark.sqlite3", timeout=20)) as database, database:
            yield database


def processes_with(word: str) -> Iterator[tuple[int, str]]:
    """Live processes that hold `word` in their environment or have a file open below it, with their command line."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            files = [os.readlink(link) for link in (entry / "fd").iterdir()]
            environment = (entry / "environ").read_bytes().decode(errors="replace")
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in environment or any(file.startswith(word) for file in files):
            yield int(entry.name), line


def until(holds: Callable[[], T], *, seconds: float = 240.0) -> T:
    """What `holds` gives once that is true; a server that does not answer yet is waited for."""
    ends_at = time.monotonic() + seconds
    while True:
        try:
            if value := holds():
                return value
        except HTTPError:
            raise
        except (URLError, OSError):
            pass
        assert time.monotonic() < ends_at, "did not happen in time"
        time.sleep(0.1)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    yield installation
    installation.process.kill()
    installation.process.wait()


def test_everything_starts_measures_survives_and_leaves_nothing(up: Installation):
    until(lambda: "MemoryMark is at" in up.output.read_text())
    assert up.ask("/health")["device"]
    assert re.search(r"first administrator: admin {3}password: \S{16}", up.output.read_text())

    answer = up.ask("/analyze", QUICK)
    trained = [each["batch_size"] for each in answer["data"]["results"] if each["success"]]
    # what it advises depends on how busy the machine is
    assert (max(trained), answer["data"]["certified"]) == (QUICK["max_batch_size"], False)

    cancelled = up.ask("/analyze", LONG, Prefer="respond-async")["run_id"]
    until(lambda: up.processes("-m engine --spec"))
    up.cancel(cancelled)
    until(lambda: up.state(cancelled) == "cancelled")

    left = up.ask("/analyze", LONG, Prefer="respond-async")["run_id"]
    until(lambda: up.processes("-m engine --spec"))
    os.kill(max(up.processes("manage.py worker --device")), signal.SIGKILL)  # not the one without a device
    until(lambda: up.attempts(left) == ["owner_died", ""])
    assert up.state(left) == "running"
    up.cancel(left)
    until(lambda: up.state(left) == "cancelled")

    stopped = up.ask("/analyze", LONG, Prefer="respond-async")["run_id"]
    until(lambda: up.state(stopped) == "running" and up.processes("-m engine --spec"))
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 0
    assert (up.state(stopped), up.attempts(stopped)) == ("queued", ["worker_stopped"])
    assert until(lambda: not up.processes(), seconds=60)
