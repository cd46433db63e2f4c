"""Requests that wait for their runs leave a real server free for the others."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from django.conf import settings as django_settings
from django.db import connection

from tests.factories import make_device

WAIT_SECONDS = 3.0


@pytest.fixture
def server(transactional_db, tmp_path) -> Iterator[str]:
    """gunicorn with one process of two threads, on the test database."""
    if connection.vendor != "sqlite":
        pytest.skip("the server is given the name of the test database's file")
    make_device()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "MEMORYMARK_DATA_DIR": str(tmp_path),
        "MEMORYMARK_LOCAL": "1",
        "MEMORYMARK_ANALYZE_WAIT_SECONDS": str(WAIT_SECONDS),
    }
    options = ["--bind", bind, "--threads", "2", "--log-level", "error"]
    command = [sys.executable, "-m", "gunicorn", "memorymark_site.wsgi", *options]
    child = subprocess.Popen(command, env=environment, cwd=django_settings.BASE_DIR)
    try:
        _wait_until_it_answers(f"http://{bind}/health")
        yield f"http://{bind}"
    finally:
        child.terminate()
        child.wait(timeout=20)


def _wait_until_it_answers(address: str) -> None:
    until = monotonic() + 120
    while monotonic() < until:
        try:
            urlopen(address, timeout=5).close()
        except (URLError, TimeoutError):
            sleep(0.1)
        else:
            return
    pytest.fail("the server does not answer")


def _analyze(address: str) -> tuple[int, float]:
    body = json.dumps({"model_name": "bert"}).encode()
    began = monotonic()
    with urlopen(Request(f"{address}/analyze", body, {"Content-Type": "application/json"}), timeout=120) as answer:
        return answer.status, monotonic() - began


@pytest.mark.slow
def test_many_who_wait_leave_a_thread_for_everybody_else(server):
    with ThreadPoolExecutor(8) as people:
        asked = [people.submit(_analyze, server) for _ in range(6)]
        next(as_completed(asked))  # the first one that need not wait
        began = monotonic()
        urlopen(f"{server}/health", timeout=120).close()
        health_seconds = monotonic() - began
        answers = [each.result() for each in asked]
    assert [status for status, _ in answers] == [202] * 6
    assert sum(seconds >= WAIT_SECONDS for _, seconds in answers) == 1
    assert health_seconds < WAIT_SECONDS / 2
