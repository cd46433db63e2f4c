"""The database goes away, is full, read-only, older than the code, or parts die at random: nothing measured is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from analysis.models import Attempt, Run, RunLog, State
from analysis.runs import services
from tests.faults.fleet import Fleet, is_sqlite
from tests.faults.outage import Database

pytestmark = pytest.mark.slow

SLOW = {"FAKE_ENGINE_PROBE_SECONDS": "0.6"}


@pytest.mark.parametrize("outage_seconds", [1.5, 10])
def test_an_outage_in_mid_run_costs_nothing(fleet: Fleet, database: Database, outage_seconds: float):
    """F04, and F05 where the outage is longer than the run: the result is written once that is possible."""
    card = fleet.card()
    server = fleet.serve_until_ready(card, **SLOW)
    run = fleet.run(card)
    fleet.until_measuring(run)
    with database.away():
        time.sleep(outage_seconds)
    (run,) = fleet.until_over(run, seconds=40)
    assert (run.state, run.attempt, run.largest_batch_size, server.starts) == (State.FINISHED, 1, 32, 1)
    assert run.measurements.count() == 5


@pytest.mark.nightly
def test_an_outage_longer_than_a_write_waits_costs_nothing(fleet: Fleet, database: Database):
    """F05: SQLite's writers give up after 20 s, PostgreSQL's at once; both try again."""
    card = fleet.card()
    fleet.serve_until_ready(card, **SLOW)
    run = fleet.run(card)
    fleet.until_measuring(run)
    with database.away():
        time.sleep(25)
    (run,) = fleet.until_over(run, seconds=60)
    assert (run.state, run.attempt, run.largest_batch_size) == (State.FINISHED, 1, 32)


def test_a_worker_that_starts_before_its_database_comes_up_by_itself(fleet: Fleet, database: Database):
    """F16, as after a power cut."""
    card = fleet.card()
    run = fleet.run(card)
    with database.away():
        fleet.serve(card)
        time.sleep(2)
    (run,) = fleet.until_over(run, seconds=40)
    assert (run.state, run.attempt) == (State.FINISHED, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("outage_seconds", [4, 25])
def test_an_outage_longer_than_the_lease_robs_nobody(fleet: Fleet, database: Database, outage_seconds: float):
    """F17: an eager reaper finds every lease run out; suspects clear themselves before the second look."""
    cards = [fleet.card(0, "lab-1"), fleet.card(0, "lab-2")]
    slow = {"FAKE_ENGINE_PROBE_SECONDS": "1.5", "MEMORYMARK_RUN_SUSPECT_SECONDS": "5"}
    for card in cards:
        fleet.serve(card, look_seconds=0.5, **slow)
    fleet.until(lambda: all(server.is_ready for server in fleet.servers))
    runs = [fleet.run(card) for card in cards]
    for run in runs:
        fleet.until_measuring(run)
    with database.away():
        time.sleep(outage_seconds)
    assert [(run.state, run.attempt) for run in fleet.until_over(*runs, seconds=60)] == [(State.FINISHED, 1)] * 2


@contextmanager
def no_room() -> Iterator[None]:
    """No log line finds room. A database that is full says the same of any write."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$; "
            "CREATE TRIGGER full_disk BEFORE INSERT ON analysis_runlog EXECUTE FUNCTION full_disk()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION full_disk() CASCADE")


def test_a_full_disk_is_waited_for(fleet: Fleet):
    """The engine goes on; what it said is stored once there is room."""
    if is_sqlite():
        pytest.skip("SQLite limits its pages per connection, so not in another process")
    card = fleet.card()
    fleet.serve_until_ready(card)
    with no_room():
        run = fleet.run(card)
        fleet.until_started(run)
        time.sleep(1.5)
        run.refresh_from_db()
        assert run.state == State.RUNNING
    (run,) = fleet.until_over(run)
    assert (run.state, run.attempt) == (State.FINISHED, 1)
    assert RunLog.objects.filter(run=run, attempt=1).exists()


def test_a_clock_that_was_set_back_hides_neither_runs_nor_messages(fleet: Fleet):
    """Signs of life and messages lie ten minutes ahead, as they do after the clock was corrected."""
    card = fleet.card()
    ahead = timezone.now() + timedelta(minutes=10)
    left, waiting = fleet.run(card), fleet.run(card)
    assert services.run_claim(device=card, owner="dead", run_id=left.pk)
    Run.objects.filter(pk=left.pk).update(heartbeat_at=ahead, started_at=ahead)
    OrmQ.objects.update(lock=ahead)
    fleet.serve(card)
    left, waiting = fleet.until_over(left, waiting)
    assert (left.state, left.attempt, waiting.state) == (State.FINISHED, 2, State.FINISHED)


def test_a_thousand_waiting_runs_are_cancelled_at_once(fleet: Fleet):
    card = fleet.card()
    first = fleet.run(card)
    rows = [Run(**{**columns(first), "pk": None}) for _ in range(999)]
    Run.objects.bulk_create(rows)
    numbers = list(Run.objects.values_list("pk", flat=True))
    started_at = time.monotonic()
    assert services.runs_cancel(run_ids=numbers) == 1000
    assert time.monotonic() - started_at < 10
    assert Run.objects.filter(state=State.CANCELLED).count() == 1000
    fleet.serve_until_ready(card)
    (run,) = fleet.until_over(fleet.run(card))
    assert (run.state, sum(map(fleet.starts, rows))) == (State.FINISHED, 0)


def columns(run: Run) -> dict[str, object]:
    return {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}


def test_a_read_only_database_is_refused_in_a_sentence(tmp_path: Path):
    """Root may write anything, so the folder is what is missing for it."""
    file = tmp_path / "nowhere" / "runs.sqlite3"
    if os.geteuid() != 0:
        file = tmp_path / "runs.sqlite3"
        file.touch(mode=0o444)
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{file}", "MEMORYMARK_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "manage.py", "worker"]
    done = subprocess.run(command, env=environment, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "cannot be written" in done.stderr


PARTS = ("worker", "sentinel", "engine", "main", "monitor", "pusher")
RUNS, CARDS = int(os.environ.get("CHAOS_RUNS", "20")), 4
KILLS = int(os.environ.get("CHAOS_KILLS", "10"))
PROBE_SECONDS = os.environ.get("CHAOS_PROBE_SECONDS", "0.5")  # long enough for the kills to be over before the runs
SEED = int(os.environ.get("CHAOS_SEED", "3"))
OVER = (State.FINISHED, State.FAILED, State.INTERRUPTED)


def test_random_kills_and_two_outages_lose_and_double_nothing(fleet: Fleet, database: Database, record_property):
    """F20."""
    cards = [fleet.card(number) for number in range(CARDS)]
    reference = fleet.run(cards[0])
    for card in cards:
        fleet.serve(card, FAKE_ENGINE_PROBE_SECONDS=PROBE_SECONDS)
    (reference,) = fleet.until_over(reference)
    runs = [fleet.run(cards[number % CARDS]) for number in range(RUNS)]
    killed = disturb(fleet, runs, database, random.Random(SEED))
    ended = fleet.until_over(*runs, seconds=300)
    record_property("seed", SEED)
    record_property("kills", f"{sum(killed.values())} {dict(killed)}")
    record_property("states", dict(Counter(run.state for run in ended)))
    record_property("attempts", dict(sorted(Counter(run.attempt for run in ended).items())))
    assert sum(killed.values()) >= KILLS
    assert {run.state for run in ended} <= set(OVER)
    for run in ended:
        check(run, reference)


def disturb(fleet: Fleet, runs: list[Run], database: Database, chance: random.Random) -> Counter[str]:
    """Kill until there were enough kills or every run is over; the database goes away at a third and two thirds."""
    killed: Counter[str] = Counter()
    outages = [KILLS // 3, 2 * KILLS // 3]
    waiting = Run.objects.filter(pk__in=[run.pk for run in runs], state__in=(State.QUEUED, State.RUNNING))
    ends_at = time.monotonic() + 900  # 400 s are not enough on a machine that does other work
    while sum(killed.values()) < KILLS and waiting.exists() and time.monotonic() < ends_at:
        pause_ends_at = time.monotonic() + chance.uniform(0.1, 1.5)
        fleet.until(lambda at=pause_ends_at: time.monotonic() >= at)
        part, server = chance.choice(PARTS), chance.choice(fleet.servers)
        if pid := server.part(part):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed[part] += 1
        if outages and sum(killed.values()) >= outages[0]:
            outages.pop(0)
            with database.away():
                time.sleep(3)
    return killed


def check(run: Run, reference: Run) -> None:
    """Its attempts tell the same story as its row, and a result is the one that an undisturbed run gives."""
    attempts = list(Attempt.objects.filter(run=run).order_by("number"))
    assert [attempt.number for attempt in attempts] == list(range(1, run.attempt + 1)), run
    assert all(attempt.ended_at for attempt in attempts), run
    assert [attempt.outcome for attempt in attempts].count(State.FINISHED) == (run.state == State.FINISHED), run
    assert attempts[-1].outcome == run.state, run
    if run.state == State.FINISHED:
        assert figures(run) == figures(reference), run
    else:
        assert run.attempts.filter(counted=True).count() >= 2, run


def figures(run: Run) -> dict[str, object]:
    return {name: value for name, value in run.result.items() if name != "spec"}
