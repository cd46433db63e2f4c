"""A real HTTP server on loopback that answers as the portal does, and can be away, slow, refuse or die."""

import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "mm_w_loopback_secret"

Fault = str | tuple[int, dict[str, Any]] | None
"""``die`` amid an answer, ``hang``, ``garbage``, or a status with its body; None answers as a portal does."""


@dataclass
class LoopbackPortal:
    """What the portal has stored, and what it was sent."""

    url: str = ""
    fault: Callable[[str, int], Fault] = lambda _path, _number: None
    announced: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    results: dict[str, bytes] = field(default_factory=dict)
    can_say_what_it_has: bool = True
    calls: list[tuple[str, int]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    cancels: bool = False
    heartbeat_seconds: float = 1.0
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        with self.lock:
            if path == "/api/v1/results/":
                return self._store(body)
            content = json.loads(body)
            if path == "/api/v1/results/known/":
                return self._known(content["sha256"])
            if path == "/api/v1/reports/":
                is_new = content["run_key"] not in self.announced
                self.announced[content["run_key"]] = content
                received = self.events.setdefault(content["run_key"], [])
                place = {"id": 812, "url": f"{self.url}/runs/812/"}
                body_ = {**place, "next": len(received), "heartbeat_seconds": self.heartbeat_seconds}
                return 201 if is_new else 200, body_
            return self._take(self.events.get(path.split("/")[-3]), content)

    def _take(self, received: list[dict[str, Any]] | None, content: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if received is None:
            return 404, {"detail": "no such run"}
        if content["first"] > len(received):
            return 409, {"next": len(received)}
        assert len(content["events"]) <= 500
        if sum(event["event"] == "probe" for event in content["events"]) > 50:
            return 413, {"detail": "at most 50 probes"}
        received += content["events"][len(received) - content["first"] :]
        return 200, {"next": len(received), "cancel_requested": self.cancels}

    def _known(self, digests: list[str]) -> tuple[int, dict[str, Any]]:
        if not self.can_say_what_it_has:
            return 404, {"detail": "no such page"}
        assert len(digests) <= 500
        return 200, {"known": {each: self._place(self.results[each]) for each in digests if each in self.results}}

    def _place(self, body: bytes) -> dict[str, Any]:
        run_key = json.loads(body)["result"]["environment"]["run_key"]
        return {"id": 812, "url": f"{self.url}/runs/812/", "next": len(self.events.get(run_key, []))}

    def _store(self, body: bytes) -> tuple[int, dict[str, Any]]:
        digest = hashlib.sha256(body).hexdigest()
        is_new = digest not in self.results
        self.results[digest] = body
        return 201 if is_new else 200, {"id": 812, "url": f"{self.url}/runs/812/", "sha256": digest}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that hung up."""


@contextmanager
def serving(portal: LoopbackPortal, context: ssl.SSLContext | None = None) -> Iterator[LoopbackPortal]:
    """Serve until the end of the block."""
    server = _Server(("127.0.0.1", 0), _handler_of(portal))
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    portal.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield portal
    finally:
        portal.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler_of(portal: LoopbackPortal) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fault = portal.fault(self.path, len(portal.calls))
            portal.headers.append(dict(self.headers))
            if fault == "hang":
                portal.calls.append((self.path, 0))
                portal.ended.wait(60)
                return
            if fault == "garbage":
                return self._answer(200, b"<html>captive portal</html>")
            if isinstance(fault, tuple):
                return self._answer(fault[0], json.dumps(fault[1]).encode())
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self._answer(401, b'{"detail": "Not signed in."}')
            status, content = portal.answer(self.path, body)
            return self._answer(status, json.dumps(content).encode(), is_cut=fault == "die")

        def _answer(self, status: int, content: bytes, *, is_cut: bool = False) -> None:
            portal.calls.append((self.path, status))
            self.send_response(status)
            if status in (301, 302, 307, 308):
                self.send_header("Location", json.loads(content)["to"])
            if status == 429:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if is_cut else content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
