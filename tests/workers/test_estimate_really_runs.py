"""The default queue's worker as a process of its own finishes a real estimate, and survives being killed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings

from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ASK = (
    "from analysis.runs import services; from engine.settings.spec import RunSpec; "
    "from engine.estimate.spec import EstimateSpec; "
    "print(services.run_create(spec=EstimateSpec(RunSpec(model='bert-tiny'), '{gpu}')).pk)"
)


class Portal:
    """A data folder of its own, with one worker of the default queue and no device at all."""

    def __init__(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
        self.folder = folder
        self.environment = {**kept, "MEMORYMARK_DATA_DIR": str(folder), "MEMORYMARK_HOST": "lab"}
        self.manage("migrate", "--verbosity", "0")
        self.worker = self.start_worker()

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        told = subprocess.run(command, env=self.environment, cwd=settings.BASE_DIR, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        return told.stdout

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "worker"]
        return subprocess.Popen(command, env=self.environment, cwd=settings.BASE_DIR, stderr=subprocess.DEVNULL)

    def ask(self, gpu: str) -> int:
        return int(self.manage("shell", "--no-imports", "-c", ASK.format(gpu=gpu)).split()[-1])

    def row(self, columns: str, run_id: int) -> tuple:
        with closing(sqlite3.connect(self.folder / "memorymark.sqlite3", timeout=20)) as database:
            return database.execute(f"SELECT {columns} FROM analysis_run WHERE id=?", [run_id]).fetchone()


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    portal = Portal(tmp_path)
    yield portal
    portal.worker.kill()
    portal.worker.wait()


def test_all_cards_are_answered_though_the_worker_is_killed_meanwhile(portal: Portal):
    run = portal.ask("all")
    wait_until(lambda: portal.row("state", run) == ("running",))
    os.kill(portal.worker.pid, signal.SIGKILL)
    portal.worker.wait()
    portal.worker = portal.start_worker()
    wait_until(lambda: portal.row("state", run)[0] in ("finished", "failed"))
    assert portal.row("state, attempt, device_id, error_message", run) == ("finished", 2, None, "")
    estimates = json.loads(portal.row("result", run)[0])["estimates"]
    assert len({estimate["gpu"]["id"] for estimate in estimates}) >= 25
    assert all(estimate["largest_batch_size"] >= estimate["safe_batch_size"] > 0 for estimate in estimates)
    assert portal.row("largest_batch_size, device_name", run) == (None, "")
