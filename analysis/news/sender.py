"""The loop of `manage.py send_news`: a process of its own, so that a hanging receiver delays no run and no estimate.

One thread uses the database; the others only send. Several senders may run, on any host that reaches the database.
Killed at any point, it loses nothing: events wait in their table, and deliveries that it had taken are due again.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from django.utils import timezone

from analysis.database import DATABASE_AWAY, connections_release
from analysis.models.querysets import SEEN_LATELY
from analysis.news.decide import note_silent_devices
from analysis.news.deliver import Parcel, attempt, store_outcome, take_due
from analysis.news.fan_out import dispatch_waiting
from analysis.news.post import DeliveryOutcome
from analysis.news.week import note_week

logger = logging.getLogger(__name__)

AT_ONCE = 8
_LOOK_SECONDS = 1.0
_DEVICES_SECONDS = 15.0
_AWAY_SECONDS = 5.0
_STOP_SECONDS = 2.0


class NewsSender:
    """Dispatches events, sends deliveries that are due, and stores their outcomes, until it is stopped."""

    def __init__(self) -> None:
        self._is_stopping = False
        self._under_way: dict[Future[DeliveryOutcome], Parcel] = {}
        # after a start of the whole portal every device is silent until its worker is up
        self._devices_at = time.monotonic() + SEEN_LATELY.total_seconds()

    def stop(self) -> None:
        self._is_stopping = True

    def work(self) -> None:
        """Work until stopped. An attempt that is under way then gets a moment; if it ends later, it is repeated."""
        threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="news")
        while not self._is_stopping:
            try:
                self.look(threads)
            except DATABASE_AWAY as exc:
                logger.warning("news wait, the database is away: %s", str(exc).splitlines()[:1])
                connections_release()
                time.sleep(_AWAY_SECONDS)
            self._wait(_LOOK_SECONDS)
        self._wait(_STOP_SECONDS)
        self._store_done()
        threads.shutdown(wait=False, cancel_futures=True)

    def look(self, threads: ThreadPoolExecutor) -> None:
        self._store_done()
        if time.monotonic() >= self._devices_at:
            self._devices_at = time.monotonic() + _DEVICES_SECONDS
            note_silent_devices()
            note_week(timezone.now())
        dispatch_waiting()
        busy = {parcel.delivery.subscription_id for parcel in self._under_way.values()}
        for parcel in take_due(AT_ONCE - len(self._under_way), busy):
            self._under_way[threads.submit(attempt, parcel)] = parcel

    def _store_done(self) -> None:
        """Store the outcomes of ended attempts; an outcome that cannot be stored now waits for the next look."""
        for future in [future for future in self._under_way if future.done()]:
            if (error := future.exception()) is None:
                outcome = future.result()
            else:  # a fault of ours is an outcome too: it must not end the sender at each repetition
                logger.error("an attempt failed by a fault of the sender", exc_info=error)
                outcome = DeliveryOutcome(False, 0.0, reason=f"a fault of the sender: {type(error).__name__}")
            store_outcome(self._under_way[future], outcome)
            del self._under_way[future]

    def _wait(self, seconds: float) -> None:
        if self._under_way:
            wait(self._under_way, timeout=seconds, return_when=FIRST_COMPLETED)
        elif not self._is_stopping:
            time.sleep(seconds)
