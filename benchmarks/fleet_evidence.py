"""What the rows of a simulated fleet prove, what the claim's queries cost, and what each repeated piece of work costs.

Imported by `fleet_scale.py` once the database is there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402
from django_q.models import OrmQ  # noqa: E402

from analysis.models import Attempt, Device, Run, State  # noqa: E402
from analysis.runs import services  # noqa: E402
from analysis.runs.queue.placement import Placement  # noqa: E402
from analysis.runs.services import LogLine  # noqa: E402
from analysis.workers.device_discovery import devices_refresh  # noqa: E402
from engine.facts.result import Outcome, Probe  # noqa: E402
from engine.settings.spec import RunSpec  # noqa: E402

_TABLES = ("analysis_run", "analysis_attempt", "analysis_measurement", "analysis_runlog", "django_q_ormq")


def rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def none_doubled() -> dict[str, int]:
    """Every run: one attempt, one result. Every device: never two attempts at one time. All but the first are 0."""
    attempts = list(
        Attempt.objects.order_by("device_id", "started_at").values_list("device_id", "started_at", "ended_at")
    )
    overlaps = sum(
        before[0] == after[0] and (before[2] is None or before[2] > after[1])
        for before, after in zip(attempts, attempts[1:], strict=False)
    )
    per_run = Counter(Attempt.objects.values_list("run_id", flat=True))
    return {
        "runs_finished": Run.objects.filter(state=State.FINISHED, result__isnull=False).count(),
        "runs_not_finished": Run.objects.exclude(state=State.FINISHED).count(),
        "runs_without_result": Run.objects.filter(result=None).count(),
        "runs_with_several_attempts": sum(number > 1 for number in per_run.values()),
        "attempts_overlapping_on_a_device": overlaps,
    }


def fairness(last_person: User) -> dict[str, Any]:
    """Starts of each person while all others still had runs waiting, and the wait of the one who came last."""
    started: dict[int, list[datetime]] = defaultdict(list)
    for person, at in Run.objects.order_by("started_at").values_list("requested_by", "started_at"):
        started[person].append(at)
    single = Run.objects.get(requested_by=last_person)
    others = {person: times for person, times in started.items() if person != last_person.pk}
    all_waited_until = min(times[-1] for times in others.values())
    shared = {person: sum(at <= all_waited_until for at in times) for person, times in others.items()}
    greedy = max(others, key=lambda person: len(others[person]))
    between = Attempt.objects.filter(started_at__gt=single.created_at, started_at__lt=single.started_at)
    return {
        "starts_per_person_while_all_waited": {
            "fewest": min(shared.values()),
            "most": max(shared.values()),
            "of_the_half": shared[greedy],
        },
        "longest_between_two_starts_of_a_person_while_all_waited_seconds": max(
            (b - a).total_seconds()
            for times in others.values()
            for a, b in zip(times, times[1:], strict=False)
            if b <= all_waited_until
        ),
        "single_run_waited_seconds": (single.started_at - single.created_at).total_seconds(),
        "claims_of_others_meanwhile": between.count(),
        "runs_before_it_in_the_queue": Run.objects.filter(
            created_at__lt=single.created_at, started_at__gt=single.created_at
        ).count(),
    }


def busiest_second() -> int:
    """Most claims within one second of the clock."""
    return max(
        Counter(at.replace(microsecond=0) for at in Attempt.objects.values_list("started_at", flat=True)).values()
    )


def explained(device: Device) -> list[dict[str, Any]]:
    """Each query of one claim, undone again, with what PostgreSQL says of it."""
    with CaptureQueriesContext(connection) as captured, transaction.atomic():
        services.run_claim(device=device, owner="explain")
        transaction.set_rollback(True)
    queries = [q["sql"] for q in captured if q["sql"].startswith(("SELECT", "UPDATE", "INSERT"))]
    plans = []
    for sql in queries[:-1]:  # the last one reads the claimed run, which is undone
        with transaction.atomic():
            plan = [line for (line,) in rows("EXPLAIN (ANALYZE, BUFFERS) " + sql.replace("%", "%%"))]
            transaction.set_rollback(True)
        milliseconds = sum(
            float(line.split()[2]) for line in plan if line.startswith(("Planning Time", "Execution Time"))
        )
        plans.append({"sql": sql[:60], "milliseconds": round(milliseconds, 2), "plan": plan})
    return plans


def connections_of_a_real_worker() -> int:
    """A true `manage.py worker --device cpu` on this database: how many connections its processes hold."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    before = rows(count)[0][0]
    command = [sys.executable, str(ROOT / "manage.py"), "worker", "--device", "cpu"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most, until = 0, time.monotonic() + 25
    while time.monotonic() < until and worker.poll() is None:
        most = max(most, rows(count)[0][0] - before)
        time.sleep(0.5)
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
    return most


class UnitCosts:
    """Repeats one piece of work on the quiet database, on one connection."""

    def __init__(self, server_cpu_seconds: Callable[[], float]) -> None:
        self._server_cpu_seconds = server_cpu_seconds
        self.found: dict[str, dict[str, float]] = {}

    def measure(self, name: str, work: Callable[[], object], repeats: int) -> None:
        work()
        wal_before, server_before = self._wal_bytes(), self._server_cpu_seconds()
        client_before, began_at = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            work()
        wall, client = time.perf_counter() - began_at, time.process_time() - client_before
        server, wal = self._server_cpu_seconds() - server_before, self._wal_bytes() - wal_before
        self.found[name] = {
            "repeats": repeats,
            "wall_ms": round(wall / repeats * 1000, 3),
            "client_cpu_ms": round(client / repeats * 1000, 3),
            "server_cpu_ms": round(server / repeats * 1000, 3),
            "wal_bytes": round(wal / repeats),
        }

    def of_claims(self, name: str, repeats: int) -> None:
        """Claims by one device after the other, each undone."""
        devices = list(Device.objects.select_related("host"))

        def claim() -> None:
            with transaction.atomic():
                services.run_claim(device=devices[0], owner="unit cost")
                transaction.set_rollback(True)
            devices.append(devices.pop(0))

        self.measure(name, claim, repeats)

    def of_a_running_run(self) -> None:
        """What is done again and again while a run goes on, and by who looks at it."""
        device = Device.objects.select_related("host")[0]
        user = User.objects.order_by("pk")[0]
        services.run_create(spec=RunSpec("bert-tiny"), place=Placement(device=device), requested_by=user)
        run = services.run_claim(device=device, owner="unit cost")
        assert run is not None
        lease = {"run_id": run.pk, "token": run.token}
        numbers = iter(range(1, 100_000))
        probe = Probe(8, Outcome.FITS, steps=3, timed_step_seconds=(0.5,) * 10)
        line = [LogLine("info", "batch 8 fits: 1.7 GiB, 9.8 samples/s")]
        self.measure("heartbeat", lambda: services.run_heartbeat(**lease, phase="searching"), 1000)
        self.measure("look for a cancel", lambda: services.run_wants_cancel(run_id=run.pk), 1000)
        self.measure("probe", lambda: services.measurement_add(**lease, probe=probe, sequence=next(numbers)), 500)
        self.measure("log line", lambda: services.log_add(**lease, lines=line, first_sequence=next(numbers)), 500)
        self.measure("sign of life of a device", lambda: devices_refresh([device]), 500)
        self.measure("look for silent owners", services.runs_reap, 500)
        messages = OrmQ.objects.filter(key=device.queue_name)
        self.measure("queue's poll", lambda: list(messages.filter(lock__lt=timezone.now())[:1]), 1000)
        self._of_pages(run, user)
        services.run_mark_cancelled(**lease)

    def _of_pages(self, run: Run, user: User) -> None:
        client = Client(SERVER_NAME="localhost", headers={"HX-Request": "true"})
        client.force_login(user)
        for name, address in (
            ("page: a running run's poll", reverse("analysis:run_live", args=[run.pk])),
            ("page: the list of devices", reverse("analysis:devices")),
        ):
            answer = client.get(address)
            assert answer.status_code in (200, 204), (address, answer.status_code)
            self.measure(name, lambda address=address: client.get(address), 20)

    def _wal_bytes(self) -> int:
        return int(rows("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")[0][0])


def sizes() -> dict[str, dict[str, Any]]:
    """Bytes on disk with indexes and TOAST, rows, and how many updates needed no index write (HOT)."""
    found = {}
    for table in _TABLES:
        total, live, updated, hot, dead = rows(
            "SELECT pg_total_relation_size(relid), n_live_tup, n_tup_upd, n_tup_hot_upd, n_dead_tup"
            " FROM pg_stat_user_tables WHERE relname = %s",
            table,
        )[0]
        found[table] = {"bytes": total, "rows": live, "updates": updated, "hot_updates": hot, "dead_rows": dead}
    return found


def processes_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def server_cpu_seconds(postmaster: int) -> float:
    """Return the CPU time of the server and all it ever forked; the dead count in their parent's account."""
    ticks = 0
    for pid in processes_of(postmaster):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(stat[11]) + int(stat[12])
        if pid == postmaster:
            ticks += int(stat[13]) + int(stat[14])
    return ticks / os.sysconf("SC_CLK_TCK")
