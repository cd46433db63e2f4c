"""`python manage.py send_news`: delivers news to webhooks and by mail. `up` starts one; several may run."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from analysis.database import connections_release, refuse_unmigrated
from analysis.news.sender import NewsSender


class Command(BaseCommand):
    help = "Deliver news to webhooks and by mail, until SIGTERM or Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        sender = NewsSender()

        def stop(number: int, frame: FrameType | None) -> None:
            sender.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        sender.work()
        connections_release()
        os._exit(0)  # Python would wait for the threads of hanging receivers; what they do is repeated anyway
