"""The parts of `manage.py up`; that it really starts is tested in test_up_really_starts.py."""

import errno
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from analysis.database import migration_lock
from analysis.management.commands import up
from analysis.management.commands.worker import find_device
from engine.facts.result import DeviceFacts
from engine.text.units import GIB
from tests.factories import make_device


def test_a_taken_port_is_refused_before_anything_happens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"port {port} on 127.0.0.1 is taken"):
            call_command("up", "--port", str(port))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("host", "port"), [("nowhere.invalid", 5001), ("192.0.2.1", 5001)])
def test_an_address_that_cannot_be_used_is_refused(host, port):
    with pytest.raises(CommandError, match="cannot be used"):
        up.refuse_taken_port(host, port)


@pytest.mark.parametrize("port", [0, -1, 70_000])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(CommandError, match="must be from 1 to 65535"):
        up.refuse_taken_port("127.0.0.1", port)


def test_behind_a_proxy_nobody_counts_as_this_machine(settings):
    settings.PRODUCTION = True
    assert up.web_server("127.0.0.1", 5001).environment["MEMORYMARK_LOCAL"] == "0"


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("192.0.2.1", False)],
)
def test_only_a_loopback_address_serves_this_machine_alone(host, is_local):
    assert up.is_loopback(host) is is_local
    assert up.web_server(host, 5001).environment["MEMORYMARK_LOCAL"] == str(int(is_local))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:5001"),
        ("0.0.0.0", "http://127.0.0.1:5001"),
        ("::", "http://[::1]:5001"),
        ("::1", "http://[::1]:5001"),
        ("lab.example", "http://lab.example:5001"),
    ],
)
def test_the_address_that_is_printed_can_be_opened_here(host, url):
    assert up.address(host, 5001) == url


def test_the_name_it_is_served_under_is_an_allowed_host(monkeypatch):
    monkeypatch.setenv("MEMORYMARK_ALLOWED_HOSTS", "lab.example")
    assert up.web_server("192.0.2.1", 5001).environment["MEMORYMARK_ALLOWED_HOSTS"] == "lab.example,192.0.2.1"


@pytest.mark.django_db
def test_a_worker_is_started_with_its_devices_queue():
    device = make_device()
    child = up.worker(device)
    assert child.command[-2:] == ["--device", str(device.pk)]
    assert child.environment == {"Q_CLUSTER_NAME": device.queue_name}


def test_work_without_a_device_has_a_worker_of_its_own():
    child = up.default_worker()
    assert child.command[-1] == "worker"
    assert "Q_CLUSTER_NAME" not in child.environment


@pytest.mark.django_db
def test_a_worker_finds_its_device_by_number_name_or_uuid_and_registers_it(monkeypatch):
    facts = DeviceFacts("cuda:0", "cuda", "A card", GIB, uuid="GPU-1")
    monkeypatch.setattr("analysis.workers.device_discovery.devices_find", lambda: [facts])
    device = find_device("GPU-1")
    assert find_device(str(device.pk)) == find_device("cuda:0") == device
    with pytest.raises(CommandError, match="cuda:1 is not a device of this host; it has cuda:0 GPU-1"):
        find_device("cuda:1")
    with pytest.raises(CommandError, match="no device has this number"):
        find_device("9")


def start(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        env={**environment, "MEMORYMARK_DATA_DIR": str(folder)},
        cwd=django_settings.BASE_DIR,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [("up", "--port", "5999"), ("migrate",), ("worker",)], ids=lambda words: words[0])
def test_a_start_on_a_damaged_file_is_refused_in_a_sentence(tmp_path, command):
    (tmp_path / "memorymark.sqlite3").write_bytes(b"SQLite format 3\0" + b"?" * 8_000)
    done = start(tmp_path, *command)
    assert done.returncode == 1
    assert "CommandError: the database cannot be used: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_start_on_a_full_disk_is_refused_in_a_sentence(monkeypatch):
    def refuse(name: str, **options: object) -> None:
        if name == "collectstatic":
            raise OSError(errno.ENOSPC, "No space left on device", "/data/static/base.css")

    monkeypatch.setattr(up, "call_command", refuse)
    with pytest.raises(CommandError, match="/data/static/base.css: No space left on device; nothing was started"):
        call_command("up", "--port", "5998")


@pytest.mark.django_db(transaction=True)
def test_two_that_migrate_one_database_take_turns():
    order, waits = [], threading.Event()

    def migrate_too() -> None:
        try:
            with migration_lock(connection, on_wait=waits.set):
                order.append("second")
        finally:
            connection.close()

    second = threading.Thread(target=migrate_too)
    with migration_lock(connection, on_wait=lambda: pytest.fail("nobody else migrates")):
        second.start()
        assert waits.wait(30)
        order.append("first")
    second.join(30)
    assert order == ["first", "second"]
