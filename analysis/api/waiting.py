"""Requests that wait for their run, or work long. Each holds a thread of the server, so their number is bounded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TypeAlias

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from analysis.api import limits
from analysis.models import TERMINAL_STATES, Run

Person: TypeAlias = AbstractBaseUser | AnonymousUser


class WaitingSlots:
    """Places of this process for requests of one kind that hold a thread for long; one person has at most half.

    Programs on this machine, which need no login, count as one person.
    """

    def __init__(self, places: Callable[[], int]) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._taken: Counter[int | None] = Counter()

    def take(self, person: Person) -> bool:
        """Take a place, if there is one for this person; `release` frees it."""
        with self._lock:
            places, own = self.places(), self._taken[person.pk]
            has_place = self._taken.total() < places and own < max(places // 2, 1)
            self._taken[person.pk] = own + has_place
        return has_place

    def release(self, person: Person) -> None:
        with self._lock:
            self._taken[person.pk] -= 1
            self._taken += Counter()  # without those who have none

    @contextmanager
    def place(self, person: Person) -> Iterator[bool]:
        """Take a place for the block, and give it back; False: there was none."""
        has_place = self.take(person)
        try:
            yield has_place
        finally:
            if has_place:
                self.release(person)


def _part_of_threads(part: int, *, most: int) -> int:
    threads = settings.WEB_THREADS
    return most if threads is None else min(most, threads // part)


def _document_places() -> int:
    threads = settings.WEB_THREADS
    return 4 if threads is None else max(1, threads // 4)


slots = WaitingSlots(lambda: _part_of_threads(2, most=settings.ANALYZE_WAITING_REQUESTS))
"""For the end of a run: at most half of the threads."""
streams = WaitingSlots(lambda: _part_of_threads(4, most=settings.STREAMS_OPEN))
"""For a stream of events: at most a quarter of the threads, so that a quarter always serves the others."""
documents = WaitingSlots(_document_places)
"""For a result document that is read, or waits to be read: at most a quarter of the threads."""
_reading = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)


@contextmanager
def document_place(person: Person) -> Iterator[bool]:
    """Wait until few other documents are read. False: too many wait already, or it took too long."""
    with documents.place(person) as may_wait:
        is_reading = may_wait and _reading.acquire(timeout=limits.DOCUMENT_WAIT_SECONDS)
        try:
            yield is_reading
        finally:
            if is_reading:
                _reading.release()


def waited_for(run: Run, request: Request) -> Run:
    """Wait for the run's end or the time limit, unless the client prefers not to or no slot is free; return it anew."""
    wishes = [word.strip().lower() for word in request.headers.get("Prefer", "").split(",")]
    if "respond-async" not in wishes and wait_until_over(run, settings.ANALYZE_WAIT_SECONDS, request.user):
        run.refresh_from_db()
    return run


def wait_until_over(run: Run, seconds: float, person: Person) -> bool:
    """Wait so long for the end of the run. False: no slot was free for this person, and there was no wait."""
    with slots.place(person) as has_place:
        until = monotonic() + seconds
        while has_place and monotonic() < until:
            if Run.objects.filter(pk=run.pk, state__in=TERMINAL_STATES).exists():
                break
            sleep(limits.WAIT_POLL_SECONDS)
    return has_place
