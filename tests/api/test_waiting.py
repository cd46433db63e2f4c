"""Requests that wait for their runs leave a real server free for the others."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from django.conf import settings as django_settings
from django.db import connection

from analysis.accounts.tokens import token_create
from analysis.models import Device
from analysis.runs import services
from tests.factories import make_claimed_run, make_device

WAIT_SECONDS = 3.0


@pytest.fixture
def server(transactional_db, tmp_path) -> Iterator[str]:
    """gunicorn with one process of two threads, on the test database."""
    with _serving(tmp_path, threads=2) as address:
        yield address


@pytest.fixture
def server_of_four_threads(transactional_db, tmp_path) -> Iterator[str]:
    with _serving(tmp_path, threads=4) as address:
        yield address


@contextmanager
def _serving(tmp_path: Path, *, threads: int) -> Iterator[str]:
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
    options = ["--bind", bind, "--threads", str(threads), "--log-level", "error"]
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


def _analyze(address: str, secret: str) -> tuple[int, float]:
    body, began = json.dumps({"model_name": "bert"}).encode(), monotonic()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret}"}
    with urlopen(Request(f"{address}/analyze", body, headers), timeout=120) as answer:
        return answer.status, monotonic() - began


@pytest.mark.slow
def test_many_who_wait_leave_a_thread_for_everybody_else(server, alice):
    _, secret = token_create(owner=alice, name="t", may_write=True, expires_at=None)
    with ThreadPoolExecutor(8) as people:
        asked = [people.submit(_analyze, server, secret) for _ in range(6)]
        next(as_completed(asked))  # the first one that need not wait
        began = monotonic()
        urlopen(f"{server}/health", timeout=120).close()
        health_seconds = monotonic() - began
        answers = [each.result() for each in asked]
    assert [status for status, _ in answers] == [202] * 6
    assert sum(seconds >= WAIT_SECONDS for _, seconds in answers) == 1
    assert health_seconds < WAIT_SECONDS / 2


@pytest.mark.slow
def test_open_streams_leave_threads_for_everybody_else_and_are_free_again_when_their_client_is_gone(
    server_of_four_threads, alice
):
    run = make_claimed_run(Device.objects.get())
    _, secret = token_create(owner=alice, name="t", may_write=False, expires_at=None)
    address = f"{server_of_four_threads}/api/v1/runs/{run.pk}/events/stream/"
    stream = Request(address, headers={"Authorization": f"Bearer {secret}"})
    with urlopen(stream, timeout=60) as first:
        assert first.readline() == b"retry: 2000\n"
        with pytest.raises(HTTPError) as refused:
            urlopen(stream, timeout=60)
        assert (refused.value.code, refused.value.headers["Retry-After"]) == (503, "10")
        refused.value.close()
        urlopen(f"{server_of_four_threads}/health", timeout=60).close()
    lease = {"run_id": run.pk, "token": run.token}
    services.run_fail(**lease, code="bad_spec", message="x")  # what is sent now finds that the first client is gone
    until = monotonic() + 60
    while monotonic() < until:
        try:
            text = urlopen(stream, timeout=60).read()
        except HTTPError as still_taken:
            still_taken.close()
            sleep(0.2)
        else:
            assert b"event: end" in text
            return
    pytest.fail("the place of a stream whose client is gone stays taken")
