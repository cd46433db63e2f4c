"""`python manage.py worker --device cuda:0`: executes runs of a device; without one, work that needs no card."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analysis.database import refuse_unmigrated
from analysis.models import Device
from analysis.workers.device_discovery import device_register
from analysis.workers.worker import DeviceWorker, Worker
from engine.errors import EngineError


class Command(BaseCommand):
    """Serves one queue until SIGTERM or Ctrl-C. `up` starts a worker for each device and one without a device."""

    help = "Execute the queued runs of one device of this host, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--device",
            help="UUID, cuda:0, cpu, ... (registered if new), or the device's number in the admin panel; "
            "default: serve the queue of work that needs no device",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        worker = DeviceWorker(find_device(options["device"])) if options["device"] else Worker()
        is_default = worker.queue_name == settings.Q_CLUSTER["name"]
        if os.environ.get("Q_CLUSTER_NAME") != (None if is_default else worker.queue_name):
            start_again(None if is_default else worker.queue_name, worker.device)
        sys.exit(worker.work())


def find_device(text: str) -> Device:
    """Find a device by row number; or by UUID or the engine's name, on this host. Raises CommandError."""
    if text.isdecimal():
        if device := Device.objects.select_related("host").filter(pk=text).first():
            return device
        raise CommandError(
            f"--device {text}: no device has this number; `manage.py up` registers the devices of a host"
        )
    try:
        return device_register(text)
    except EngineError as exc:
        raise CommandError(str(exc), returncode=exc.exit_status) from exc


def start_again(queue_name: str | None, device: Device | None) -> None:
    """Start this process again with the queue's name, which django-q2 reads once when Django starts."""
    environment = {name: value for name, value in os.environ.items() if name != "Q_CLUSTER_NAME"}
    if queue_name:
        environment["Q_CLUSTER_NAME"] = queue_name
    arguments = [sys.argv[0], "worker", *(["--device", str(device.pk)] if device else [])]
    os.execve(sys.executable, [sys.executable, *arguments], environment)  # noqa: S606  (no shell is wanted)
