"""MLflow's tracking store with as many runs, on SQLite: newest 50, one filter, one sort. Started by history_scale.

    mlflow/bin/python benchmarks/history_mlflow.py FOLDER 10000 100000

The store makes its own database and one run, which is then repeated by plain INSERTs: each run has the ten parameters,
the six figures and the ten steps of a metric that a run of ours has. Reading goes through MLflow's own client.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
from mlflow import MlflowClient

MODELS, PRECISIONS = ("bert", "gpt2", "resnet", "resnet18", "distilbert", "bert-tiny"), ("fp32", "bf16", "fp16", "tf32")
METRICS = ("largest", "recommended", "speedup", "samples_per_second", "peak_bytes", "saving_per_year")
PROBES, TIMES, PAGE = 10, 15, 50
FIRST_MS = 1_704_067_200_000
BOTH = "params.model = 'gpt2' and params.precision = 'bf16'"


def main() -> None:
    folder, sizes = Path(sys.argv[1]), [int(size) for size in sys.argv[2:]]
    path = folder / "mlflow.sqlite3"
    client = MlflowClient(f"sqlite:///{path}")
    experiment = client.create_experiment("history", artifact_location=str(folder / "artifacts"))
    filled, measured = 0, []
    for size in sizes:
        fill(path, experiment, filled, size)
        filled = size
        measured.append({"runs": size, **measure(client, experiment)})
    sys.stdout.write(json.dumps({"version": mlflow.__version__, "sizes": measured}))


def fill(path: Path, experiment: str, first: int, last: int) -> None:
    database = sqlite3.connect(path)
    for table, columns, rows in (
        ("runs", 14, _runs(experiment, first, last)),
        ("params", 3, _params(first, last)),
        ("metrics", 6, _metrics(first, last)),
        ("latest_metrics", 6, _latest(first, last)),
        ("tags", 3, ((f"mlflow.{key}", value, _id(n)) for n in range(first, last) for key, value in _tags(n))),
    ):
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", rows)
    database.execute("ANALYZE")
    database.commit()
    database.close()


def measure(client: MlflowClient, experiment: str) -> dict[str, Any]:
    def search(**filters: Any) -> Callable[[], Any]:
        return lambda: client.search_runs([experiment], max_results=PAGE, **filters)

    return {
        "newest_50_ms": _timed(search(order_by=["attributes.start_time DESC"])),
        "filter_on_two_parameters_ms": _timed(search(filter_string=BOTH)),
        "sort_by_a_metric_ms": _timed(search(order_by=["metrics.largest DESC"])),
    }


def _timed(ask: Callable[[], Any]) -> dict[str, float]:
    if len(ask()) != PAGE:
        raise RuntimeError("MLflow found less than a page")
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - started) * 1000)
    return {"p50": round(statistics.median(taken), 1), "p95": round(sorted(taken)[int(0.95 * TIMES)], 1)}


def _id(number: int) -> str:
    return f"{number * 2654435761 % 2**32:08x}{number:024x}"


def _runs(experiment: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    for number in range(first, last):
        at, own = FIRST_MS + number * 90_000, _id(number)
        source = ("UNKNOWN", "", "", "person", "FINISHED", at, at + 60_000, "", "active")
        yield (own, f"run-{number}", *source, f"artifacts/{own}", int(experiment), None)


def _params(first: int, last: int) -> Iterator[tuple[str, str, str]]:
    for number in range(first, last):
        dice = random.Random(number)
        given = {"model": dice.choice(MODELS), "precision": dice.choice(PRECISIONS)}
        for key, value in (given | {f"setting_{place}": str(place) for place in range(8)}).items():
            yield key, value, _id(number)


def _metrics(first: int, last: int) -> Iterator[tuple[Any, ...]]:
    for number in range(first, last):
        for step in range(PROBES):
            yield "peak_bytes", float(step * 10**9), FIRST_MS, _id(number), step, 0


def _latest(first: int, last: int) -> Iterator[tuple[Any, ...]]:
    for number in range(first, last):
        dice = random.Random(number)
        for key in METRICS:
            yield key, dice.uniform(1, 2000), FIRST_MS, PROBES - 1, 0, _id(number)


def _tags(number: int) -> list[tuple[str, str]]:
    return [("runName", f"run-{number}"), ("user", "person")]


if __name__ == "__main__":
    main()
