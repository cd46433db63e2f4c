"""`manage.py worker`, but impatient: `python -m tests.faults.quick_worker LOOK_SECONDS FROZEN_SECONDS [DEVICE]`."""

import os
import sys

import django
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memorymark_site.settings")
django.setup()

from analysis.workers import django_q_adapter, worker  # noqa: E402  (Django first)

look_seconds, frozen_seconds, *device = sys.argv[1:]
worker.LOOK_SECONDS, worker.FROZEN_SECONDS = float(look_seconds), float(frozen_seconds)
django_q_adapter.WAIT_SECONDS = float(frozen_seconds) / 8
execute_from_command_line(["manage.py", "worker", *(["--device", device[0]] if device else [])])
