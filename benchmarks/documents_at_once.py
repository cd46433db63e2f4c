"""How long other people wait for a page while many large result documents are sent at the same moment.

    python benchmarks/documents_at_once.py --documents 4 --size 1000000 --out /tmp/try.json     try it: half a minute
    python benchmarks/documents_at_once.py

Each document is an honest one of 3.9 MB, most of it numbers, from a person of its own; where the portal is busy (503),
it is sent again after the time that the answer names. Meanwhile one more person opens pages of the real web server, one
after the other. Server, senders and that person share the cores of this machine. Right is: no page takes a second, and
every document is stored.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
OUT = ROOT / "benchmarks" / "results" / "documents_at_once.sqlite.json"
PAGES = ("/", "/runs/", "/runs/1/", "/fleet/", "/matrix/", "/api/v1/runs/")
BEFORE_SECONDS, LONGEST_SECONDS = 10.0, 1.0
HOST, STARTED_AT = "node7", "2026-11-20T10:00:00+00:00"

from benchmarks.report_faults import Portal, in_threads  # noqa: E402


def document(size: int, rng: random.Random) -> bytes:
    """Return an honest result file of about this size: the numbers that fill it stand in its environment."""
    from tests.engine.honest_worker import HonestWorker, document_of

    result = document_of(HonestWorker(528))
    result["environment"] |= {"run_key": rng.randbytes(16).hex(), "host": HOST, "started_at": STARTED_AT}
    content = {"exit_status": 0, "result": result}
    numbers = result["environment"]["numbers"] = [rng.random()]
    of_each = len(json.dumps([rng.random() for _ in range(1_000)])) / 1_000
    numbers += [rng.random() for _ in range(int((size - len(json.dumps(content))) / of_each))]
    return json.dumps(content).encode()


class Sender:
    """A person who sends one document until it is stored."""

    def __init__(self, port: int, token: str, body: bytes) -> None:
        self.port, self.token, self.body = port, token, body
        self.answers: list[int] = []
        self.seconds = 0.0

    def run(self) -> None:
        began = time.monotonic()
        while (status := self._send()) in (0, 503) and len(self.answers) < 200:
            self.answers.append(status)
        self.answers.append(status)
        self.seconds = time.monotonic() - began

    def _send(self) -> int:
        """Send it; where the portal is busy, wait for as long as it says. 0: the connection was closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", "/api/v1/results/", self.body, headers)
            answer = connection.getresponse()
            answer.read()
        except OSError:
            time.sleep(1.0)
            return 0
        finally:
            connection.close()
        if answer.status == 503:
            time.sleep(float(answer.headers.get("Retry-After") or 1.0))
        return answer.status


class Reader:
    """A person who opens one page after the other."""

    def __init__(self, port: int, cookie: str) -> None:
        self.port, self.cookie = port, cookie
        self.taken: dict[str, list[float]] = {page: [] for page in PAGES}
        self.answers: Counter[int] = Counter()

    def read_while(self, goes_on: Callable[[], bool]) -> dict[str, Any]:
        """Open pages; how long they took."""
        self.taken = {page: [] for page in PAGES}
        self.answers.clear()
        while goes_on():
            for page in PAGES:
                began = time.monotonic()
                self.answers[self._open(page)] += 1
                self.taken[page].append(time.monotonic() - began)
        return self._figures()

    def _open(self, page: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", page, headers={"Cookie": self.cookie, "Accept": "text/html,*/*;q=0.8"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def _figures(self) -> dict[str, Any]:
        taken = sorted(each for times in self.taken.values() for each in times)
        return {
            "pages": len(taken),
            "answers": dict(self.answers),
            "median_seconds": round(taken[len(taken) // 2], 3),
            "p95_seconds": round(taken[int(len(taken) * 0.95)], 3),
            "longest_seconds": round(taken[-1], 3),
            "longest_of_each": {page: round(max(times), 3) for page, times in self.taken.items()},
        }


def people(number: int) -> tuple[list[str], str]:
    """Make the senders; a token of each, and the cookie of one more person."""
    from django.conf import settings
    from django.contrib.auth.models import Group, User
    from django.test import Client

    from analysis.accounts.tokens import token_create

    tokens = []
    for count in range(number):
        person = User.objects.create_superuser(f"sender-{count}")
        person.groups.set(Group.objects.all())
        tokens.append(token_create(owner=person, name="node", may_write=True, expires_at=None)[1])
    client = Client()
    client.force_login(User.objects.create_superuser("reader"))
    return tokens, f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    rng = random.Random(options.seed)
    bodies = [document(options.size, rng) for _ in range(options.documents)]
    portal = Portal(folder, "sqlite")
    try:
        portal.start()
        portal.wait_until_it_answers()
        tokens, cookie = people(options.documents + 1)
        Sender(portal.port, tokens.pop(), document(1, rng)).run()  # whose page is opened
        reader = Reader(portal.port, cookie)
        reader.read_while(lambda: not any(reader.taken["/"]))  # once before it counts
        until = time.monotonic() + BEFORE_SECONDS
        before = reader.read_while(lambda: time.monotonic() < until)
        senders = [Sender(portal.port, token, body) for token, body in zip(tokens, bodies, strict=True)]
        began = time.monotonic()
        threads = in_threads([each.run for each in senders])
        during = reader.read_while(lambda: any(thread.is_alive() for thread in threads))
        seconds = time.monotonic() - began
    finally:
        portal.close()
    return {
        "documents": options.documents,
        "bytes_of_each": len(bodies[0]),
        "stored": sum(each.answers[-1] == 201 for each in senders),
        "answers_to_documents": dict(sorted(Counter(status for each in senders for status in each.answers).items())),
        "seconds_until_all_were_stored": round(seconds, 1),
        "before": before,
        "during": during,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--size", type=int, default=3_900_000)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    machine |= {"load_average_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(prefix="memorymark-at-once-") as folder:
        report = measured(options, Path(folder))
    machine["load_average_after"] = round(os.getloadavg()[0], 1)
    command = shlex.join(["python", "benchmarks/documents_at_once.py", *sys.argv[1:]])
    server = "gunicorn, 1 process of 16 threads, SQLite"
    report = {"command": command, "server": server, "machine": machine, **report}
    text = json.dumps(report, indent=1)
    options.out.write_text(text + "\n")
    print(text)
    is_right = report["stored"] == options.documents and report["during"]["longest_seconds"] < LONGEST_SECONDS
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
