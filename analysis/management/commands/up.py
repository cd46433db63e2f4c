"""`python manage.py up`: sets up and starts the whole portal on this machine."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from analysis.database import DATABASE_AWAY, connections_release
from analysis.models import Device
from analysis.workers.device_discovery import accelerators_or_cpu, devices_find, devices_register
from analysis.workers.process_manager import Child, ProcessManager
from engine.errors import EngineError

_DATABASE_SECONDS = 3.0
_STOP_SECONDS = 4.0
_READY_SECONDS = 30.0

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """Sets up what is missing, and runs the web server and a worker per device until Ctrl-C."""

    help = "Set up and start MemoryMark here: database, static files, administrator, web server, workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine alone)")
        parser.add_argument("--port", type=int, default=5001)

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        refuse_taken_port(host, port)
        self._processes, self._stops = ProcessManager(adopts_orphans=True), 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        try:
            devices = self._set_up()
        except DatabaseError as exc:
            raise CommandError(f"the database cannot be used: {exc}") from exc
        except OSError as exc:  # as on a full disk
            raise CommandError(
                f"{exc.filename or settings.DATA_DIR}: {exc.strerror or exc}; nothing was started"
            ) from exc
        url = address(host, port)
        self._processes.start([web_server(host, port), default_worker(), news_sender(url), *map(worker, devices)])
        try:
            self._keep(url)
        finally:
            self._say("stopping ...")
            self._processes.stop(seconds=_STOP_SECONDS)
            self._say("stopped")

    def _set_up(self) -> list[Device]:
        """Set up everything that the children need. Each step can be repeated safely."""
        self._migrate()
        call_command("collectstatic", interactive=False, verbosity=0)
        call_command("first_administrator", stdout=self.stdout)
        self._say("looking for devices ...")
        try:
            found = devices_register(accelerators_or_cpu(devices_find()))
        except EngineError as exc:
            raise CommandError(str(exc)) from exc
        for device in found:
            self._say(f"device {device.device}: {device.name}{'' if device.enabled else ' (disabled)'}")
        return [device for device in found if device.enabled]

    def _migrate(self) -> None:
        """Migrate the database, after waiting for its server: after a power cut both may start together."""
        while not self._stops:
            try:
                call_command("migrate", interactive=False, verbosity=0)
                return
            except DATABASE_AWAY as exc:
                self._say(f"waiting for the database: {str(exc).splitlines()[0]}")
                connections_release()
                time.sleep(_DATABASE_SECONDS)
        raise CommandError("stopped before the database was reachable")

    def _keep(self, url: str) -> None:
        ready_until = time.monotonic() + _READY_SECONDS
        is_announced = False
        while not self._stops:
            self._processes.look()
            if not is_announced and answers(f"{url}/health"):
                is_announced = True
                self._say(f"MemoryMark is at {url}   (Ctrl-C stops it)")
            if not is_announced and time.monotonic() >= ready_until:
                raise CommandError(f"{url}/health did not answer within {_READY_SECONDS:.0f} s")
            time.sleep(0.2)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1
        if self._stops > 1:
            self._processes.kill()
            os._exit(130)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def refuse_taken_port(host: str, port: int) -> None:
    """Raise CommandError, before anything is changed, when nothing can listen there."""
    if not 1 <= port <= 65_535:
        raise CommandError(f"--port {port}: must be from 1 to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as exc:
        reason = "is taken by another program" if exc.errno == errno.EADDRINUSE else f"cannot be used: {exc}"
        raise CommandError(f"port {port} on {host} {reason}; choose another with --port") from exc


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address(host: str, port: int) -> str:
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  (compared with, not bound to)
    shown = everywhere.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def web_server(host: str, port: int) -> Child:
    """Return the web server: one process with many threads, as each waiting POST /analyze holds a thread."""
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    gunicorn = [sys.executable, "-m", "gunicorn", "memorymark_site.wsgi", "--chdir", str(settings.BASE_DIR)]
    gunicorn += ["--config", str(settings.BASE_DIR / "gunicorn.conf.py")]
    gunicorn += ["--bind", bind, "--workers", "1", "--threads", "16"]
    gunicorn += ["--graceful-timeout", "2", "--log-level", "warning"]
    allowed = [name for name in (os.environ.get("MEMORYMARK_ALLOWED_HOSTS"), host) if name]
    is_for_this_machine = is_loopback(host) and not settings.PRODUCTION  # in production a proxy is in front
    environment = {"MEMORYMARK_ALLOWED_HOSTS": ",".join(allowed), "MEMORYMARK_LOCAL": str(int(is_for_this_machine))}
    return Child("web server", gunicorn, environment)


def default_worker() -> Child:
    return Child("worker without a device", [sys.executable, str(settings.BASE_DIR / "manage.py"), "worker"])


def news_sender(url: str) -> Child:
    """Return the sender of news. Its links have the portal's address, unless the settings name a public one."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "send_news"]
    return Child("sender of news", command, {"MEMORYMARK_PUBLIC_URL": settings.PUBLIC_URL or url})


def worker(device: Device) -> Child:
    manage = str(settings.BASE_DIR / "manage.py")
    command = [sys.executable, manage, "worker", "--device", str(device.pk)]
    return Child(f"worker {device.device}", command, {"Q_CLUSTER_NAME": device.queue_name})


def answers(url: str) -> bool:
    """Whether the URL answers JSON; in production a redirect to https also counts."""
    try:
        with urlopen(url, timeout=2) as response:  # noqa: S310  (our own http address)
            return "status" in json.load(response)
    except HTTPError:
        return True
    except (URLError, OSError, ValueError):
        return False
