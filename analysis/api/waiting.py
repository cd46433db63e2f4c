"""Requests that wait for the end of their run. Each holds a thread of the server, so their number is bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from django.conf import settings
from rest_framework.request import Request

from analysis.models import TERMINAL_STATES, Run

_POLL_SECONDS = 0.25


class WaitingSlots:
    """Requests of this process that wait for their runs. Half of the threads stay free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0

    @staticmethod
    def places() -> int:
        most, threads = settings.ANALYZE_WAITING_REQUESTS, settings.WEB_THREADS
        return most if threads is None else min(most, threads // 2)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Whether there is one; it is free again after the block."""
        with self._lock:
            has_place = self._waiting < self.places()
            self._waiting += has_place
        try:
            yield has_place
        finally:
            with self._lock:
                self._waiting -= has_place


slots = WaitingSlots()


def waited_for(run: Run, request: Request) -> Run:
    """Wait until the run is over or the wait runs out; not at all for a client that prefers not to, or without a slot.

    Returns the run as it then is.
    """
    if _prefers_not_to_wait(request):
        return run
    with slots.place() as has_place:
        if not has_place:
            return run
        until = monotonic() + settings.ANALYZE_WAIT_SECONDS
        while monotonic() < until and not Run.objects.filter(pk=run.pk, state__in=TERMINAL_STATES).exists():
            sleep(_POLL_SECONDS)
    run.refresh_from_db()
    return run


def _prefers_not_to_wait(request: Request) -> bool:
    return "respond-async" in [word.strip().lower() for word in request.headers.get("Prefer", "").split(",")]
