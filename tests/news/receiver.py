"""A real HTTP server on loopback that stands for a webhook's receiver."""

import hashlib
import hmac
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One request, as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


Behave = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, **headers: str) -> Behave:

    def behave(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return behave


@dataclass
class Receiver:
    """What arrived, and how the next request is answered."""

    port: int
    received: list[Received] = field(default_factory=list)
    behave: Behave = field(default_factory=lambda: answer(204))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def receiving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.received.append(Received(self.path, dict(self.headers), body))
            receiver.behave(self)

        do_GET = do_POST

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *args: None  # type: ignore[method-assign]  # a client that ends a handshake is wanted
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def is_signed(received: Received, secret: str) -> bool:
    parts = [part.split("=", 1) for part in received.headers["X-MemoryMark-Signature"].split(",")]
    moment = next(value for name, value in parts if name == "t")
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + received.body, hashlib.sha256).hexdigest()
    return digest in [value for name, value in parts if name == "v1"]
