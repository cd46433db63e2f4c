"""`manage.py worker`, but impatient: `python -m tests.faults.quick_worker DEVICE LOOK_SECONDS FROZEN_SECONDS`."""

from __future__ import annotations

import os
import sys

import django
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memorymark_site.settings")
django.setup()

from analysis.workers import worker  # noqa: E402  (Django first)

device, look_seconds, frozen_seconds = sys.argv[1:]
worker.LOOK_SECONDS, worker.FROZEN_SECONDS = float(look_seconds), float(frozen_seconds)
execute_from_command_line(["manage.py", "worker", "--device", device])
