"""Fills a store of MLflow with runs, for its own server to read. Started by `api_load.py` with MLflow's Python.

    mlflow/bin/python benchmarks/api_load_mlflow.py FOLDER 1000

Prints its version, the experiment and the runs' ids as JSON. The runs are those of `history_mlflow.py`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import mlflow
from history_mlflow import fill
from mlflow import MlflowClient


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2])
    path = folder / "mlflow.sqlite3"
    experiment = MlflowClient(f"sqlite:///{path}").create_experiment("load")
    fill(path, experiment, 0, runs)
    with sqlite3.connect(path) as database:
        ids = [row[0] for row in database.execute("SELECT run_uuid FROM runs ORDER BY run_uuid LIMIT 200")]
    sys.stdout.write(json.dumps({"version": mlflow.__version__, "experiment": experiment, "ids": ids}))


if __name__ == "__main__":
    main()
