"""Portal and workers on two made-up cards: each run has its own, and estimates open none."""

import json
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from engine.text.units import GIB
from tests.cuda_stand_in.cards import ENGINE, ROOT, Cards, uuid

SECONDS = 600.0  # a bound for what must happen, on however busy a machine

# two runs, one per card, and two estimates that have the default queue for themselves
CREATE = """
from analysis.models import Device
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.estimate.spec import EstimateSpec
from engine.settings.spec import RunSpec
spec = RunSpec("bert-tiny", device="cuda:0", sequence_length=32, max_batch_size=8, current_batch_size=8, soak_steps=3)
runs = [services.run_create(spec=spec, place=Placement(device=Device.objects.get(uuid=uuid))) for uuid in {uuids}]
runs += [services.run_create(spec=EstimateSpec(spec, gpu)) for gpu in ("a100-40gb", "all")]
print([run.pk for run in runs])
"""


class Portal:
    """A portal with its own database, and workers as processes of their own, as `manage.py up` starts them."""

    def __init__(self, cards: Cards, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **cards.environment,
            "MEMORYMARK_DATA_DIR": str(folder),
            "MEMORYMARK_LOCK_DIR": str(folder / "locks"),
            "MEMORYMARK_HOST": "lab",
            "MEMORYMARK_ENGINE_COMMAND": shlex.join(ENGINE),
            "MEMORYMARK_ENGINE_ENVIRONMENT": "STAND_IN_FOLDER",
        }
        self.environment.pop("DATABASE_URL", None)
        self.workers: list[subprocess.Popen[bytes]] = []
        self.manage("migrate", "--verbosity", "0")

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_worker(self, *arguments: str) -> None:
        command = [sys.executable, "manage.py", "worker", *arguments]
        with (self.folder / f"worker-{len(self.workers)}.log").open("wb") as log:
            self.workers.append(subprocess.Popen(command, env=self.environment, cwd=ROOT, stdout=log, stderr=log))

    def rows(self, query: str) -> list[tuple]:
        with closing(sqlite3.connect(self.folder / "memorymark.sqlite3", timeout=60)) as database:
            return database.execute(query).fetchall()

    def until(self, holds: Callable[[], object]) -> None:
        ends_at = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < ends_at, self.told()
            time.sleep(0.1)

    def told(self) -> str:
        logs = [path.read_text()[-2000:] for path in self.folder.glob("worker-*.log")]
        return "\n".join([*logs, str(self.rows("SELECT id, state, error_code, error_message FROM analysis_run"))])

    def end(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(60)


@pytest.fixture(scope="module")
def told(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[tuple], Cards]]:
    """What the portal stored of two runs and two estimates that were queued at once."""
    folder = tmp_path_factory.mktemp("portal")
    cards = Cards(folder / "cards", built)
    cards.set(cards=2, memory=f"{4 * GIB},{3 * GIB}")
    portal = Portal(cards, folder)
    try:
        for card in (0, 1):  # one after the other: each asks the engine what the host has
            portal.start_worker("--device", uuid(card))
            of_the_card = f"SELECT id FROM analysis_device WHERE uuid='{uuid(card)}'"
            portal.until(partial(portal.rows, of_the_card))
        portal.start_worker()
        portal.manage("shell", "--no-imports", "-c", CREATE.format(uuids=[uuid(0), uuid(1)]))
        over = "SELECT id FROM analysis_run WHERE state NOT IN ('queued', 'running')"
        portal.until(lambda: len(portal.rows(over)) == 4)
        yield portal.rows("SELECT state, started_at, finished_at, result FROM analysis_run ORDER BY id"), cards
    finally:
        portal.end()


def results(rows: list[tuple]) -> list[dict]:
    return [json.loads(row[3]) for row in rows]


def test_two_runs_and_two_estimates_finish(told: tuple) -> None:
    assert [row[0] for row in told[0]] == ["finished"] * 4


def test_the_two_runs_were_under_way_at_the_same_time(told: tuple) -> None:
    (_, first_started, first_ended, _), (_, second_started, second_ended, _) = told[0][:2]
    assert first_started < second_ended
    assert second_started < first_ended


def test_each_run_saw_its_own_card_alone(told: tuple) -> None:
    devices = [result["device"] for result in results(told[0][:2])]
    assert [device["uuid"] for device in devices] == [uuid(0), uuid(1)]
    assert [device["capacity_bytes"] for device in devices] == [4 * GIB, 3 * GIB]
    assert [device["device"] for device in devices] == ["cuda:0", "cuda:0"]
    assert not any(device["is_shared"] for device in devices)


def test_every_context_is_one_of_a_runs_sessions_so_estimates_made_none(told: tuple) -> None:
    rows, cards = told
    made = [card for _, card in cards.contexts()]
    for card, result in enumerate(results(rows[:2])):
        assert made.count(uuid(card)) == result["timings"]["processes"]


def test_no_process_opened_both_cards(told: tuple) -> None:
    contexts = told[1].contexts()
    assert len({pid for pid, _ in contexts}) == len(contexts)
