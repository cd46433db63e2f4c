"""A fleet in a test: real worker processes on fake cards, kept alive, and words for what is to be seen of them."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import OperationalError, connection

from analysis.models import Device, Run, State
from analysis.workers.engine_process import dies_with_its_parent
from tests.factories import make_card, make_run, make_run_of_several
from tests.waiting import wait_until

T = TypeVar("T")
RESTART_SECONDS = 0.5
PACE = {"HEARTBEAT": "0.3", "LEASE": "2", "SUSPECT": "1", "STALL": "3"}
ENGINE = f"{sys.executable} -m tests.faults.engine"


class Server:
    """A kept worker: whatever kills it, it is started again, as a service manager does."""

    def __init__(self, environment: dict[str, str], log: Path, arguments: list[str]) -> None:
        self.log = log
        self._environment, self._arguments = environment, arguments
        self._restart_at, self.is_kept, self.starts = 0.0, True, 0
        self.process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            self.end()
            self.process, self._restart_at = None, time.monotonic() + RESTART_SECONDS
        if self.process is None and self.is_kept and time.monotonic() >= self._restart_at:
            self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.faults.quick_worker", *self._arguments]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*dies_with_its_parent(), *command],
                env=self._environment,
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    def end(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def main(self) -> int:
        assert self.process is not None
        return self.process.pid

    def part(self, name: str) -> int | None:
        """The process number of `main`, `sentinel`, `worker`, `monitor`, `pusher` or `engine`; None: there is none."""
        if self.process is None or self.process.poll() is not None:
            return None
        if name == "main":
            return self.main
        sentinel = next(iter(children(self.main)), None)
        if name == "sentinel" or sentinel is None:
            return sentinel
        if name == "engine":
            return next((pid for child in children(sentinel) for pid in children(child)), None)
        number = ("worker", "monitor", "pusher").index(name)  # the order in which django-q2 starts them
        return dict(enumerate(children(sentinel))).get(number)

    @property
    def is_ready(self) -> bool:
        return self.part("pusher") is not None


class Fleet:
    """The servers of one test, with their folders and their fake cards."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder, self.servers = folder, list[Server]()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MEMORYMARK_", "DJANGO_"))},
            **{f"MEMORYMARK_RUN_{name}_SECONDS": value for name, value in PACE.items()},
            "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
            "DATABASE_URL": database_url,
            "SECRET_KEY": settings.SECRET_KEY,  # signs the queue's messages
            "MEMORYMARK_DATA_DIR": str(folder / "data"),
            "MEMORYMARK_LOCK_DIR": str(folder / "locks"),
            "MEMORYMARK_ENGINE_COMMAND": ENGINE,
            "MEMORYMARK_ENGINE_ENVIRONMENT": "FAKE_ENGINE_DIR,FAKE_ENGINE_PROBE_SECONDS",
            "FAKE_ENGINE_DIR": str(folder / "engine"),
        }
        for name in ("modes", "starts", "cards"):
            (folder / "engine" / name).mkdir(parents=True)

    def card(self, number: int = 0, host: str = "lab-1") -> Device:
        return make_card(number, host, uuid=f"GPU-fake-{host}-{number}")

    def serve(self, device: Device, *, look_seconds: float = 2, frozen_seconds: float = 60, **given: str) -> Server:
        """Start a worker for it, with what is `given` in its environment; do not wait for it."""
        environment = {"Q_CLUSTER_NAME": device.queue_name, "MEMORYMARK_HOST": device.host.name, **given}
        return self._start(environment, [str(look_seconds), str(frozen_seconds), str(device.pk)])

    def serve_without_device(self, host: str, *, look_seconds: float, frozen_seconds: float) -> Server:
        return self._start({"MEMORYMARK_HOST": host}, [str(look_seconds), str(frozen_seconds)])

    def _start(self, environment: dict[str, str], arguments: list[str]) -> Server:
        log = self.folder / f"worker-{len(self.servers)}.log"
        server = Server({**self._environment, **environment}, log, arguments)
        self.servers.append(server)
        server.start()
        return server

    def serve_until_ready(self, device: Device, **given: float | str) -> Server:
        server = self.serve(device, **given)
        self.until(lambda: server.is_ready)
        return server

    def run(self, device: Device, *words: str, **fields: object) -> Run:
        """A queued run; `words` tell the engine what to do at each start."""
        run = make_run(device, **fields)
        self.tell(run, *words)
        return run

    def run_of_several(self, count: int, *words: str) -> Run:
        run = make_run_of_several(count)
        self.tell(run, *words)
        return run

    def tell(self, run: Run, *words: str) -> None:
        (self.folder / "engine" / "modes" / str(run.pk)).write_text("\n".join(words))

    def until(self, holds: Callable[[], T], *, seconds: float = 60.0) -> T:
        """What `holds` gives once that is true; meanwhile dead workers are started again."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            for server in self.servers:
                server.look()
            with suppress(OperationalError):
                if value := holds():
                    return value
            time.sleep(0.03)
        raise AssertionError(f"did not happen within {seconds} s\n{self.told()}")

    def until_over(self, *runs: Run, seconds: float = 60.0) -> list[Run]:
        numbers = [run.pk for run in runs]
        still = Run.objects.filter(pk__in=numbers, state__in=(State.QUEUED, State.RUNNING))
        self.until(lambda: not still.exists(), seconds=seconds)
        return [Run.objects.get(pk=number) for number in numbers]

    def until_measuring(self, run: Run) -> int:
        """Its engine's process number, once a first probe is stored."""
        self.until(lambda: run.measurements.exists())
        return self.engine_of(run)

    def until_started(self, run: Run) -> int:
        self.until(lambda: self.starts(run))
        return self.engine_of(run)

    def starts(self, run: Run) -> int:
        file = self.folder / "engine" / "starts" / str(run.pk)
        return len(file.read_text().splitlines()) if file.exists() else 0

    def engine_of(self, run: Run) -> int:
        return int((self.folder / "engine" / "starts" / str(run.pk)).read_text().split()[-1])

    def grandchildren(self) -> list[int]:
        file = self.folder / "engine" / "grandchildren"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def overlaps(self) -> str:
        file = self.folder / "engine" / "overlaps"
        return file.read_text() if file.exists() else ""

    def told(self) -> str:
        logs = [f"--- {server.log.name}\n{server.log.read_text()[-3000:]}" for server in self.servers]
        try:
            runs = list(Run.objects.values_list("pk", "state", "attempt", "error_code", "error_message"))
        except OperationalError as exc:
            runs = [repr(exc)]
        return "\n".join([*logs, *map(str, runs)])

    def end(self) -> None:
        for server in self.servers:
            server.is_kept = False
            server.end()
        strays = [*self.grandchildren(), *engines(self.folder)]
        for pid in strays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, strays)), seconds=5)


def children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return sorted(child for child in map(int, listed) if is_alive(child))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def engines(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            if "tests.faults.engine" in line and str(folder) in line:
                found.append(int(entry.name))
    return [pid for pid in found if is_alive(pid)]


def kill(pid: int | None, number: signal.Signals = signal.SIGKILL) -> None:
    assert pid is not None
    os.kill(pid, number)


def freeze_between_writes(pids: list[int | None]) -> None:
    """Stop these processes while none of them holds SQLite's lock: frozen in mid-write, it would stop everybody.

    That is a fault of its own (see `test_a_frozen_worker_is_replaced`), and no host but this one could have it.
    """
    while True:
        for pid in pids:
            kill(pid, signal.SIGSTOP)
        if not is_sqlite() or _can_write():
            return
        for pid in pids:
            kill(pid, signal.SIGCONT)
        time.sleep(0.05)


def _can_write() -> bool:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0.2)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        database.rollback()
        return True


def is_sqlite() -> bool:
    return connection.vendor == "sqlite"
