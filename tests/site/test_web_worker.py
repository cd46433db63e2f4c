"""Clients that send half a header keep nobody else out."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any
from urllib.request import urlopen

import pytest
from django.conf import settings as django_settings

THREADS = 2
ANSWER = b"here"


def plain_app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """What the server of these tests serves."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(ANSWER)))])
    return [ANSWER]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--bind", f"127.0.0.1:{port}", "--threads", str(THREADS), "--keep-alive", "30", "--log-level", "error"]
    options += ["--config", os.devnull, "--worker-class", "memorymark_site.web_worker.HeaderFirstWorker"]
    command = [sys.executable, "-m", "gunicorn", "tests.site.test_web_worker:plain_app", *options]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memorymark_site.settings"}
    child = subprocess.Popen(command, cwd=django_settings.BASE_DIR, env=environment)
    try:
        until = monotonic() + 120
        while monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except OSError:
                sleep(0.05)
        yield port
    finally:
        child.terminate()
        child.wait(timeout=60)


def opened(stack: ExitStack, port: int, sent: bytes) -> socket.socket:
    client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    client.sendall(sent)
    return client


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nX-", b""])
def test_forty_half_headers_leave_the_threads_to_others(port: int, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            opened(stack, port, sent)
        with urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            assert answer.read() == ANSWER


def test_a_header_that_comes_in_pieces_is_answered(port: int) -> None:
    with ExitStack() as stack:
        client = opened(stack, port, b"GET / HT")
        for piece in (b"TP/1.1\r\n", b"Host: here\r\nConnection: close\r", b"\n\r", b"\n"):
            sleep(0.05)
            client.sendall(piece)
        assert b"".join(iter(lambda: client.recv(4096), b"")).endswith(ANSWER)


def test_a_connection_is_used_again_also_for_requests_that_are_sent_together(port: int) -> None:
    request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        client = opened(stack, port, request)
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall(request + last)
        assert b"".join(iter(lambda: client.recv(4096), b"")).count(ANSWER) >= 2


def test_a_client_that_leaves_in_the_middle_takes_nothing_with_it(port: int) -> None:
    with ExitStack() as stack:
        opened(stack, port, b"GET / HTTP/1.1\r\nX-")
    with urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
        assert answer.status == 200
