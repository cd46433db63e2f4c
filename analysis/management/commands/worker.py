"""`python manage.py worker --device cuda:0`: runs what is queued for one device of this host."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.database import refuse_unmigrated
from analysis.devices import host_name
from analysis.models import Device
from analysis.worker import DeviceWorker


class Command(BaseCommand):
    """Serves one device until SIGTERM or Ctrl-C; `up` starts one for each."""

    help = "Run what is queued for one device of this host, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--device", required=True, help="its number in the admin panel, or cuda:0, cpu, ...")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        device = find_device(options["device"])
        if os.environ.get("Q_CLUSTER_NAME") != device.queue_name:
            # django-q2 reads the queue's name once, when Django starts: start again with it
            environment = {**os.environ, "Q_CLUSTER_NAME": device.queue_name}
            os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606  (no shell is wanted)
        sys.exit(DeviceWorker(device).work())


def find_device(text: str) -> Device:
    """By row number, or by the engine's name on this host. Raises CommandError."""
    here = Device.objects.on_host(host_name())
    if device := (Device.objects.filter(pk=text) if text.isdecimal() else here.filter(device=text)).first():
        return device
    raise CommandError(f"no device {text} on host {host_name()}; `manage.py up` registers what there is")
