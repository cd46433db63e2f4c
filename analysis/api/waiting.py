"""Requests that wait for their run. Each holds a thread of the server, so their number is bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from django.conf import settings
from rest_framework.request import Request

from analysis.models import TERMINAL_STATES, Run

_POLL_SECONDS = 0.25


class WaitingSlots:
    """Places of this process for requests of one kind that hold a thread for long."""

    def __init__(self, places: Callable[[], int]) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._waiting = 0

    def take(self) -> bool:
        """Take a place, if there is one; `release` frees it."""
        with self._lock:
            has_place = self._waiting < self.places()
            self._waiting += has_place
        return has_place

    def release(self) -> None:
        with self._lock:
            self._waiting -= 1

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Whether there is one; it is free again after the block."""
        has_place = self.take()
        try:
            yield has_place
        finally:
            if has_place:
                self.release()


def _waiting_places() -> int:
    most, threads = settings.ANALYZE_WAITING_REQUESTS, settings.WEB_THREADS
    return most if threads is None else min(most, threads // 2)


def _stream_places() -> int:
    most, threads = settings.STREAMS_OPEN, settings.WEB_THREADS
    return most if threads is None else min(most, threads // 4)


slots = WaitingSlots(_waiting_places)
"""For the end of a run: at most half of the threads."""
streams = WaitingSlots(_stream_places)
"""For a stream of events: at most a quarter of the threads, so that a quarter always serves the others."""


def waited_for(run: Run, request: Request) -> Run:
    """Wait until the run is over or the wait runs out; not at all for a client that prefers not to, or without a slot.

    Returns the run as it then is.
    """
    if not _prefers_not_to_wait(request) and wait_until_over(run, settings.ANALYZE_WAIT_SECONDS):
        run.refresh_from_db()
    return run


def wait_until_over(run: Run, seconds: float) -> bool:
    """Wait so long for the end of the run. False: no slot was free, and there was no wait."""
    with slots.place() as has_place:
        until = monotonic() + seconds
        while has_place and monotonic() < until:
            if Run.objects.filter(pk=run.pk, state__in=TERMINAL_STATES).exists():
                break
            sleep(_POLL_SECONDS)
    return has_place


def _prefers_not_to_wait(request: Request) -> bool:
    return "respond-async" in [word.strip().lower() for word in request.headers.get("Prefer", "").split(",")]
