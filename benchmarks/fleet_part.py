"""One part of the simulated fleet: some of its devices, each a thread with a connection of its own.

Started by `fleet_scale.py`, which sets the environment. It submits its share of the runs, waits for a line on
standard input, and works until nothing waits. Everything but the engine is the portal's own code: the device's
lock, recovery, claim, supervisor with outbox and heartbeats, end, wake-up. Prints one JSON line per stage.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connections  # noqa: E402
from django_q.models import OrmQ  # noqa: E402

from analysis.models import Device, Run  # noqa: E402
from analysis.runs import services  # noqa: E402
from analysis.runs.queue.placement import Placement  # noqa: E402
from analysis.workers import supervisor  # noqa: E402
from analysis.workers.device_discovery import devices_refresh  # noqa: E402
from analysis.workers.device_lock import device_lock  # noqa: E402
from analysis.workers.recovery import device_recover  # noqa: E402
from analysis.workers.tasks import rewake  # noqa: E402
from analysis.workers.worker import LOOK_SECONDS, REFRESH_SECONDS  # noqa: E402
from engine.facts.result import (  # noqa: E402
    Boundary,
    DeviceFacts,
    MemoryByKind,
    Outcome,
    Point,
    Probe,
    Purpose,
    Reason,
    RunResult,
    Savings,
    Waste,
)
from engine.settings.spec import RunSpec  # noqa: E402
from engine.text.units import GIB, MIB  # noqa: E402

SPEC = RunSpec("bert-tiny", time_budget_seconds=600, current_batch_size=4)
POLL_SECONDS = 0.5  # as Q_CLUSTER["poll"]
PHASES = {0.0: "preparing", 0.1: "searching", 1.0: "finished"}
PROBES = {0.3: 4, 0.5: 8, 0.7: 9}
ONE_IN = 10  # runs that are submitted through the service: it would take longer than all the rest


class StubEngine:
    """Says what an engine says, spread over `seconds`, and measures nothing. Stands in for `EngineProcess`."""

    last_words: tuple[str, ...] = ()

    def __init__(self, run: Run, seconds: float) -> None:
        self._began_at = self.heard_at = time.monotonic()
        self._seconds, self._is_ended = seconds, False
        self._events = deque(said(run))

    @property
    def exit_status(self) -> int | None:
        return 0 if self._is_ended or not self._events else None

    def events(self, wait_seconds: float) -> Iterator[dict[str, Any]]:
        if self._events:
            time.sleep(max(0.0, min(wait_seconds, self._due_at - time.monotonic())))
        while self._events and self._due_at <= time.monotonic():
            self.heard_at = time.monotonic()
            yield self._events.popleft()[1]

    @property
    def _due_at(self) -> float:
        return self._began_at + self._events[0][0] * self._seconds

    def signal(self, number: int) -> None:
        self._is_ended = True

    def end(self, wait_seconds: float = 30.0) -> bool:
        self._is_ended = True
        return True


def said(run: Run) -> list[tuple[float, dict[str, Any]]]:
    """The events of a run with the share of its time at which each comes."""
    facts = DeviceFacts(run.device.device, run.device.kind, run.device.name, run.device.capacity_bytes)
    probes = {share: probe(size) for share, size in PROBES.items()}
    opened = {"event": "device", "device": facts.to_dict(), "environment": {"torch": "stub"}}
    events = [(0.0, opened)]
    events += [(share, {"event": "phase", "phase": name}) for share, name in PHASES.items()]
    events += [(share, {"event": "probe", "probe": made.to_dict()}) for share, made in probes.items()]
    events.append((1.0, {"event": "result", "result": result(facts, tuple(probes.values())).to_dict()}))
    return sorted(events, key=lambda event: event[0])


def probe(batch_size: int) -> Probe:
    if batch_size == 9:
        return Probe(9, Outcome.OUT_OF_MEMORY, Purpose.SEARCH, True, error_type="Stub", error_message="over the limit")
    return Probe(
        batch_size,
        Outcome.FITS,
        steps=3,
        peak_allocated_bytes=batch_size * 100 * MIB,
        memory_by_kind=MemoryByKind(10, 20, 30, 40, 50),
        step_seconds=0.5,
        timed_step_seconds=(0.5,) * 10,
        timing_is_steady=True,
        samples_per_second=batch_size / 0.5,
    )


def result(facts: DeviceFacts, probes: tuple[Probe, ...]) -> RunResult:
    current, largest = Point.of(probes[0], facts), Point.of(probes[1], facts)
    return RunResult(
        spec=SPEC,
        device=facts,
        boundary=Boundary(8, True, 9, Reason.OUT_OF_MEMORY, "over the limit", 5),
        largest=largest,
        fastest=largest,
        recommended=largest,
        current=current,
        waste=Waste(GIB, 624 * MIB, 0.6, 224 * MIB, 0.2),
        speedup=2.0,
        batch_size_ratio=2.0,
        savings=Savings(0.6, 2.0, 100, 1.2, 0.6, 60.0),
        probes=probes,
        environment={"torch": "stub"},
    )


class SimulatedDevice(threading.Thread):
    """What `analysis.workers.tasks.wake` does for one device, again and again; a wake-up is a look after each run."""

    def __init__(self, device_id: int, mean_seconds: float) -> None:
        super().__init__(daemon=True)
        self.device_id, self.mean_seconds = device_id, mean_seconds
        self.random = random.Random(device_id)
        self.claim_seconds: list[float] = []
        self.wait_seconds: list[float] = []
        self.passed_over = 0  # looks that found something waiting and got nothing
        self.error = ""

    def run(self) -> None:
        free_at = time.monotonic()
        try:
            while (free_at := self._turn(free_at)) is not None:
                pass
        except Exception as exc:  # noqa: BLE001  (told in the report, where it counts as a failure)
            self.error = repr(exc)
        finally:
            connections.close_all()

    def _turn(self, free_at: float) -> float | None:
        """One look. Returns since when the device is free, None when nothing waits any more."""
        device = Device.objects.select_related("host").get(pk=self.device_id)
        with device_lock(device) as descriptor:
            OrmQ.objects.filter(key=device.queue_name).delete()
            device_recover(device)
            asked_at = time.monotonic()
            run = services.run_claim(device=device, owner=f"{device.host}:{self.device_id}")
            if run is not None:
                self.claim_seconds.append(time.monotonic() - asked_at)
                self.wait_seconds.append(time.monotonic() - free_at)
                supervisor.supervise(run, keep_open=[descriptor])
                free_at = time.monotonic()
                run.refresh_from_db(fields=["state"])
        if run is None:
            return self._idle(device, free_at)
        rewake(device)
        return free_at

    def _idle(self, device: Device, free_at: float) -> float | None:
        something_waits = Run.objects.waiting_for(device).exists()
        self.passed_over += something_waits
        if not something_waits and not Run.objects.queued().exists():
            return None
        time.sleep(POLL_SECONDS)
        return free_at if something_waits else time.monotonic()


class Caretaker(threading.Thread):
    """What the main processes of one host's workers do: signs of life, reaping, a wake-up each half minute."""

    def __init__(self, device_ids: list[int], is_over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.device_ids, self.is_over = device_ids, is_over

    def run(self) -> None:
        devices = list(Device.objects.filter(pk__in=self.device_ids))
        look_at = time.monotonic() + random.random() * LOOK_SECONDS
        while not self.is_over.wait(REFRESH_SECONDS):
            devices_refresh(devices)
            if time.monotonic() < look_at:
                continue
            look_at += LOOK_SECONDS
            for device in devices:
                services.runs_reap()
                OrmQ.objects.filter(key=device.queue_name).delete()
                services.worker_wake(device=device)
        connections.close_all()


def wishes(runs: int, people: int, devices: list[Device]) -> Iterator[tuple[int, Placement]]:
    """Who asks for what. The first person asks for half of all, before anybody else; the last one is not in it."""
    drawn = random.Random(1)
    for number in range(runs - 1):
        person = 0 if number < runs // 2 else 1 + number % (people - 2)
        device, kind_of_wish = drawn.choice(devices), drawn.random()
        if kind_of_wish < 0.10:
            yield person, Placement(device=device)
        elif kind_of_wish < 0.55:
            yield person, Placement(kind="cuda", device_class=device.name.split()[1])
        else:
            yield person, Placement(kind="cuda")


def copy_of(run: Run, person: User, place: Placement) -> Run:
    copied = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields if field.name != "id"}
    run = Run(**copied)
    run.requested_by, run.requested_device, run.requested_device_class = person, place.device, place.device_class
    return run


def submit(options: argparse.Namespace) -> list[float]:
    """Seconds of each `run_create`. The others are copies of a run that it made, with their own place and person."""
    people = list(User.objects.order_by("pk"))
    took = []
    every = list(wishes(options.runs, len(people), list(Device.objects.select_related("host").order_by("pk"))))
    mine = every[options.part :: options.parts]
    for first in range(0, len(mine), ONE_IN):
        (person, place), *others = mine[first : first + ONE_IN]
        asked_at = time.monotonic()
        run = services.run_create(spec=SPEC, place=place, requested_by=people[person])
        took.append(time.monotonic() - asked_at)
        Run.objects.bulk_create(copy_of(run, people[person], place) for person, place in others)
    connections.close_all()
    return took


def work(options: argparse.Namespace) -> list[SimulatedDevice]:
    """All devices of this part until nothing waits."""
    by_host: dict[int, list[int]] = {}
    for device_id, host_id in Device.objects.values_list("pk", "host_id").order_by("pk"):
        if host_id % options.parts == options.part:
            by_host.setdefault(host_id, []).append(device_id)
    connections.close_all()
    is_over = threading.Event()
    caretakers = [Caretaker(ids, is_over) for ids in by_host.values()]
    fleet = [SimulatedDevice(device_id, options.mean_seconds) for ids in by_host.values() for device_id in ids]
    by_id = {device.device_id: device for device in fleet}

    def start_stub(run: Run, *_: object) -> StubEngine:
        device = by_id[run.device_id]
        return StubEngine(run, device.mean_seconds * device.random.uniform(2 / 3, 4 / 3))

    supervisor.start_engine = start_stub
    for thread in (*caretakers, *fleet):
        thread.start()
    for thread in fleet:
        thread.join()
    is_over.set()
    return fleet


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def tell(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("part", "parts", "runs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--mean-seconds", type=float, required=True)
    options = parser.parse_args()
    tell(submit_seconds=submit(options))
    sys.stdin.readline()
    cpu_before = cpu_seconds()
    fleet = work(options)
    tell(
        claim_seconds=[s for device in fleet for s in device.claim_seconds],
        first_wait_seconds=[device.wait_seconds[0] for device in fleet if device.wait_seconds],
        wait_seconds=[s for device in fleet for s in device.wait_seconds[1:]],
        passed_over=sum(device.passed_over for device in fleet),
        errors=[device.error for device in fleet if device.error],
        cpu_seconds=cpu_seconds() - cpu_before,
    )


if __name__ == "__main__":
    main()
