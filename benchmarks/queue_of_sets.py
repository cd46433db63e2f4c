"""Runs of 1, 2 and 8 cards on a host of 8 cards: how long they wait, and how well the cards are used. Simulated.

    python benchmarks/queue_of_sets.py [--weeks 20] [--batches 200] [--output FILE]

With the function that decides in the portal (`analysis/runs/queue/reservation.py`), beside three others:

- first in, first out: nothing passes the run that is first, whatever is free;
- greedy: whatever fits starts, so that small runs pass large ones for ever;
- reserved, nothing passes: the rule without the small runs that end in time.

Seven of ten runs need one card, two need two, one needs all eight. They take 6 minutes in the median (log-normal,
sigma 1), at most their time budget, which is 30 minutes for half of them and 10 or 60 for the others: only the budget
is known to the rule. In a stream they come at random (Poisson), so that the cards are asked for 50, 70 or 85 % of the
time; in a batch 60 of them come at once, and the end of the last is compared with a lower bound: the runs of eight
cards one after another, and the work of the others shared by the cards, or the longest of them.

The promise is checked at every start of a run of several cards: it waited, since it was first, no longer than the time
budgets of what ran then.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from analysis.runs.queue.reservation import Seat, Start, starts  # noqa: E402

CARDS = 8
SIZES, SHARES = (1, 2, 8), (0.7, 0.2, 0.1)
BUDGETS_MINUTES, BUDGET_SHARES = (10.0, 30.0, 60.0), (0.25, 0.5, 0.25)
MEDIAN_MINUTES, SIGMA = 6.0, 1.0
LOADS = (0.5, 0.7, 0.85)
BATCH = 60
WEEK_MINUTES = 7 * 24 * 60.0
OUTPUT = ROOT / "benchmarks" / "results" / "queue_of_sets.json"


@dataclass(frozen=True)
class Job:
    """A run: when it comes, how many cards it needs, how long it takes and may take, in minutes."""

    number: int
    comes: float
    device_count: int
    takes: float
    most_seconds: float


Rule = Callable[[Sequence[Job], Sequence[Seat]], Iterator[Start[Job]]]


def reserved(jobs: Sequence[Job], seats: Sequence[Seat]) -> Iterator[Start[Job]]:
    return starts(jobs, seats, lambda job, card: True)


def reserved_nothing_passes(jobs: Sequence[Job], seats: Sequence[Seat]) -> Iterator[Start[Job]]:
    for start in starts([_Endless(job) for job in jobs], seats, lambda job, card: True):
        yield Start(start.run.job, start.device_ids)


def first_in_first_out(jobs: Sequence[Job], seats: Sequence[Seat]) -> Iterator[Start[Job]]:
    free = [seat.device_id for seat in seats if seat.free_after_seconds == 0]
    for job in jobs:
        if job.device_count > len(free):
            return
        yield Start(job, tuple(free[: job.device_count]))
        free = free[job.device_count :]


def greedy(jobs: Sequence[Job], seats: Sequence[Seat]) -> Iterator[Start[Job]]:
    free = [seat.device_id for seat in seats if seat.free_after_seconds == 0]
    for job in jobs:
        if job.device_count <= len(free):
            yield Start(job, tuple(free[: job.device_count]))
            free = free[job.device_count :]


@dataclass(frozen=True)
class _Endless:
    """A job of which nobody knows that it ends."""

    job: Job
    most_seconds: float = math.inf

    @property
    def device_count(self) -> int:
        return self.job.device_count


RULES: dict[str, Rule] = {
    "first in, first out": first_in_first_out,
    "greedy": greedy,
    "reserved, nothing passes": reserved_nothing_passes,
    "reserved (the rule)": reserved,
}


def draw(chance: random.Random, number: int, comes: float) -> Job:
    most = chance.choices(BUDGETS_MINUTES, BUDGET_SHARES)[0]
    takes = min(most, MEDIAN_MINUTES * chance.lognormvariate(0.0, SIGMA))
    return Job(number, comes, chance.choices(SIZES, SHARES)[0], takes, most)


def stream(chance: random.Random, load: float) -> list[Job]:
    """Draw a week of runs that come at random."""
    work = mean(job.takes * job.device_count for job in (draw(chance, 0, 0.0) for _ in range(20_000)))
    jobs, at = [], 0.0
    while (at := at + chance.expovariate(load * CARDS / work)) < WEEK_MINUTES:
        jobs.append(draw(chance, len(jobs), at))
    return jobs


@dataclass
class Played:
    """What came of a queue: the minutes that each run waited, when the last ended, and how many promises broke."""

    waits: dict[int, list[float]]
    ends: float
    use: float
    broken: int


def play(jobs: Sequence[Job], rule: Rule) -> Played:
    """Play a queue to its end."""
    coming, waiting, ends = list(jobs), list[Job](), list[tuple[float, int, Job]]()
    latest, free_at = dict.fromkeys(range(CARDS), 0.0), dict.fromkeys(range(CARDS), 0.0)
    promised: dict[int, float] = {}
    waits: dict[int, list[float]] = defaultdict(list)
    now, last, broken, at = 0.0, 0.0, 0, 0
    while at < len(coming) or waiting or ends:
        moments = [coming[at].comes] if at < len(coming) else []
        moments += [ends[0][0]] if ends else []
        now = min(moments)
        while at < len(coming) and coming[at].comes <= now:
            waiting.append(coming[at])
            at += 1
        while ends and ends[0][0] <= now:
            heapq.heappop(ends)
        seats = [Seat(card, 1, max(latest[card] - now, 1e-9) if free_at[card] > now else 0.0) for card in range(CARDS)]
        if waiting and waiting[0].device_count > 1:  # what it waits for at most, once it is first
            soonest = sorted(seat.free_after_seconds or 0.0 for seat in seats)[waiting[0].device_count - 1]
            promised.setdefault(waiting[0].number, now + soonest)
        for start in list(rule(waiting, seats)):
            job = start.run
            waiting.remove(job)
            waits[job.device_count].append(now - job.comes)
            broken += now > promised.get(job.number, math.inf) + 1e-6
            for card in start.device_ids:
                latest[card], free_at[card] = now + job.most_seconds, now + job.takes
            heapq.heappush(ends, (now + job.takes, job.number, job))
            last = max(last, now + job.takes)
    work = sum(job.takes * job.device_count for job in jobs)
    return Played(waits, last, work / (CARDS * last), broken)


def lower_bound(jobs: Sequence[Job]) -> float:
    """Return minutes below which no order ends: runs of all cards stand alone, the others share the rest."""
    alone = sum(job.takes for job in jobs if job.device_count == CARDS)
    others = [job for job in jobs if job.device_count < CARDS]
    work = sum(job.takes * job.device_count for job in others) / CARDS
    return alone + max(work, max((job.takes for job in others), default=0.0))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def described(waits: dict[int, list[float]]) -> dict[str, Any]:
    return {
        f"{size} card{'s' if size > 1 else ''}": {
            "runs": len(of_size := waits[size]),
            "mean": round(mean(of_size), 1),
            "p95": round(percentile(of_size, 0.95), 1),
            "max": round(max(of_size), 1),
        }
        for size in SIZES
    }


def all_waits(played: Sequence[Played]) -> dict[int, list[float]]:
    return {size: [minutes for each in played for minutes in each.waits[size]] for size in SIZES}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weeks", type=int, default=20)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    found: dict[str, Any] = {"weeks": options.weeks, "batches": options.batches, "unit": "minutes", "stream": {}}
    for load in LOADS:
        queues = [stream(random.Random(f"{load} {week}"), load) for week in range(options.weeks)]
        found["stream"][f"{load:.0%} asked for"] = {}
        for name, rule in RULES.items():
            played = [play(jobs, rule) for jobs in queues]
            found["stream"][f"{load:.0%} asked for"][name] = {
                "waits": described(all_waits(played)),
                "use": round(mean(each.use for each in played), 3),
                "broken_promises": sum(each.broken for each in played),
            }
            print(load, name, json.dumps(found["stream"][f"{load:.0%} asked for"][name]), flush=True)
    chance = random.Random(0)
    batches = [[draw(chance, number, 0.0) for number in range(BATCH)] for _ in range(options.batches)]
    found["batch"] = {}
    for name, rule in RULES.items():
        played = [play(jobs, rule) for jobs in batches]
        over = [each.ends / lower_bound(jobs) for each, jobs in zip(played, batches, strict=True)]
        found["batch"][name] = {
            "waits": described(all_waits(played)),
            "use": round(mean(each.use for each in played), 3),
            "end_over_lower_bound": {"mean": round(mean(over), 3), "max": round(max(over), 3)},
            "broken_promises": sum(each.broken for each in played),
        }
        print(name, json.dumps(found["batch"][name]), flush=True)
    options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
