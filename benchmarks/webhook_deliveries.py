"""Whether every delivery of news arrives or is given up in the log, under a bad receiver and senders that are killed.

A real receiver on loopback, whose host is allowed, answers each request by chance: fine, with an error, with garbage,
with a redirect to a private address, not at all, or it closes in mid-body or at once. Two real senders are killed
(SIGKILL) at random and started again, while runs end. One subscription's receiver is always broken, and two name
private addresses that are not allowed: a trap that counts requests listens there. Right is: each delivery was received
at least once with a right signature, or is in the log as given up; what the log calls delivered was received; and the
trap counts 0 requests.

    python benchmarks/webhook_deliveries.py [--events 60] [--seed 17] [--seconds 240]
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
OUT = Path(__file__).parent / "results" / "webhook_deliveries.sqlite.json"
TIMEOUT_SECONDS, RETRY_SECONDS, GIVE_UP_SECONDS = 1.0, 0.5, 45.0
SENDERS, KILLED_AFTER_SECONDS = 2, (4.0, 14.0)
BEHAVIOURS = {
    "fine": 40,
    "error": 15,
    "hang": 10,
    "redirect": 10,
    "garbage": 10,
    "closes in mid-body": 10,
    "closes at once": 5,
}
PROBLEMS = (
    "wrong_signatures",
    "lost",
    "delivered_in_the_log_but_never_received",
    "given_up_without_an_attempt_in_the_log",
    "connections_at_the_private_address",
)
"""What must be 0."""


class Receiver(BaseHTTPRequestHandler):
    """Behaves badly by chance; below /broken/ always."""

    received: list[tuple[str, str, str, bytes]] = []
    behaved: Counter[str] = Counter()
    trap_port = 0
    rng = random.Random()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = ("X-MemoryMark-Delivery", "X-MemoryMark-Signature")
        self.received.append((self.path, *(self.headers.get(name, "") for name in names), body))
        behaviour = self.rng.choices([*BEHAVIOURS], [*BEHAVIOURS.values()])[0]
        if self.path == "/broken/" and behaviour in ("fine", "closes in mid-body"):
            behaviour = "error"
        self.behaved[behaviour] += 1
        if behaviour == "hang":
            time.sleep(3 * TIMEOUT_SECONDS)
        elif behaviour == "garbage":
            self.wfile.write(b"\x00\xff garbage\r\n\r\n")
        elif behaviour == "closes in mid-body":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        elif behaviour != "closes at once":
            self.send_response({"fine": 204, "error": 500, "redirect": 307}[behaviour])
            if behaviour == "redirect":
                self.send_header("Location", f"http://127.0.0.2:{self.trap_port}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # the sender was killed
            self.close_connection = True


class Trap(BaseHTTPRequestHandler):
    """A private address: every connection is one too many."""

    connections = 0

    def setup(self) -> None:
        Trap.connections += 1
        super().setup()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], host: str) -> Iterator[int]:
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


class Senders:
    """Real processes of `manage.py send_news`, each killed at random and started again."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self.kills = rng, 0
        self._running: list[tuple[subprocess.Popen[bytes], float]] = [self._start() for _ in range(SENDERS)]

    def look(self, *, may_kill: bool) -> None:
        for place, (process, until) in enumerate(self._running):
            if may_kill and time.monotonic() >= until:
                process.kill()
                process.wait()
                self.kills += 1
                self._running[place] = self._start()

    def stop(self) -> None:
        for process, _ in self._running:
            process.kill()
            process.wait()

    def _start(self) -> tuple[subprocess.Popen[bytes], float]:
        process = subprocess.Popen([sys.executable, str(ROOT / "manage.py"), "send_news"], cwd=ROOT)
        return process, time.monotonic() + self._rng.uniform(*KILLED_AFTER_SECONDS)


def is_signed(secret: str, signature: str, body: bytes) -> bool:
    """Verify as docs/notifications.md says."""
    parts = [part.partition("=") for part in signature.split(",")]
    moment = next(value for name, _, value in parts if name == "t")
    right = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value, right) for name, _, value in parts)


def subscribe_all(owner: Any, port: int, trap_port: int) -> dict[str, str]:
    """Return the secret of each path. Those to private addresses are written past the check of a form."""
    from analysis.models import AllowedHost, NewsKind, Subscription
    from analysis.news.subscriptions import Wish, subscription_create

    AllowedHost.objects.create(host=f"127.0.0.1:{port}")
    secrets = {}
    for path in ("/a/", "/b/", "/c/", "/broken/"):
        wish = Wish(path, "webhook", [NewsKind.CANCELLED], f"http://127.0.0.1:{port}{path}")
        secrets[path] = subscription_create(owner=owner, wish=wish)[1]
    for url in (f"https://127.0.0.2:{trap_port}/", f"http://127.0.0.2:{trap_port}/"):
        Subscription.objects.create(owner=owner, name=url, channel="webhook", url=url, kinds=[NewsKind.CANCELLED])
    return secrets


def end_runs(owner: Any, device: Any, count: int) -> None:
    """End this many runs through the portal's own services: cancelled while they waited."""
    from analysis.runs import services
    from analysis.runs.queue.placement import Placement
    from engine.settings.spec import RunSpec

    for _ in range(count):
        run = services.run_create(spec=RunSpec("bert-tiny"), place=Placement(device=device), requested_by=owner)
        services.runs_cancel(run_ids=[run.pk])


def judged(secrets: dict[str, str]) -> dict[str, Any]:
    """Compare the log with what was received."""
    from analysis.models import Delivery, DeliveryAttempt

    arrived: dict[str, int] = defaultdict(int)
    forged = 0
    for path, delivery_id, signature, body in Receiver.received:
        is_right = is_signed(secrets[path], signature, body) and json.loads(body)["delivery"] == delivery_id
        arrived[delivery_id] += is_right
        forged += not is_right
    rows = list(Delivery.objects.select_related("subscription"))
    lost = [row for row in rows if not arrived[str(row.delivery_id)] and row.state != "given_up"]
    untrue = [row for row in rows if row.state == "delivered" and not arrived[str(row.delivery_id)]]
    unlogged = [row for row in rows if row.state == "given_up" and not row.attempts.exists()]
    return {
        "deliveries": len(rows),
        "states": dict(Counter(row.state for row in rows)),
        "given_up_by_receiver": dict(Counter(row.subscription.name for row in rows if row.state == "given_up")),
        "attempts_in_the_log": DeliveryAttempt.objects.count(),
        "requests_received": len(Receiver.received),
        "received_more_than_once": sum(count > 1 for count in arrived.values()),
        "behaviours": dict(Receiver.behaved),
        "wrong_signatures": forged,
        "lost": len(lost),
        "delivered_in_the_log_but_never_received": len(untrue),
        "given_up_without_an_attempt_in_the_log": len(unlogged),
        "connections_at_the_private_address": Trap.connections,
    }


def measure(events: int, seed: int, seconds: float) -> dict[str, Any]:
    from django.contrib.auth.models import User

    from analysis.models import Delivery, Device, Host, NewsEvent

    rng = random.Random(seed)
    Receiver.rng = random.Random(seed + 1)
    owner = User.objects.create_superuser("owner", password=None)
    device = Device.objects.create(host=Host.objects.create(name="lab"), device="cpu", kind="cpu", capacity_bytes=2**33)
    with serving(Trap, "127.0.0.2") as trap_port, serving(Receiver, "127.0.0.1") as port:
        Receiver.trap_port = trap_port
        secrets = subscribe_all(owner, port, trap_port)
        start, ended = time.monotonic(), 0
        senders = Senders(rng)
        try:
            while time.monotonic() - start < seconds:
                if ended < events:
                    end_runs(owner, device, min(2, events - ended))
                    ended += min(2, events - ended)
                senders.look(may_kill=True)
                waits = NewsEvent.objects.filter(dispatched_at=None).exists()
                if ended == events and not waits and not Delivery.objects.filter(state="waiting").exists():
                    break
                time.sleep(0.5)
        finally:
            senders.stop()
        taken = time.monotonic() - start
        return {"events": ended, "killed_senders": senders.kills, "seconds": round(taken, 1), **judged(secrets)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=60)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--seconds", type=float, default=240.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "MEMORYMARK_DATA_DIR": folder,
            "MEMORYMARK_LOCK_DIR": f"{folder}/locks",
            "MEMORYMARK_NEWS_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
            "MEMORYMARK_NEWS_RETRY_SECONDS": str(RETRY_SECONDS),
            "MEMORYMARK_NEWS_GIVE_UP_SECONDS": str(GIVE_UP_SECONDS),
            "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
            "DATABASE_URL": "",
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        found = measure(options.events, options.seed, options.seconds)
    settings = {"timeout_seconds": TIMEOUT_SECONDS, "retry_seconds": RETRY_SECONDS, "give_up_seconds": GIVE_UP_SECONDS}
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "database": "SQLite"}
    whole = {"seed": options.seed, "settings": settings, "machine": machine, **found}
    OUT.write_text(json.dumps(whole, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    return int(any(found[name] for name in PROBLEMS))


if __name__ == "__main__":
    sys.exit(main())
