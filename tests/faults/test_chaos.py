"""Random kills over many runs: whatever dies, the runs end as undisturbed ones do."""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from analysis.models import Attempt, Run, State
from tests.faults.fleet import Fleet
from tests.faults.outage import Database

pytestmark = pytest.mark.slow
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
