"""PURE: when a failed delivery is tried again, and when it is given up.

    attempt 1 fails   again after about 10 s, then 20 s, 40 s, ... at most an hour apart
    a day later       given up

Each delay is drawn from its upper half, so that the deliveries that failed together do not return together.
"""

from __future__ import annotations

from datetime import datetime, timedelta

LONGEST_SECONDS = 3600.0
DISABLED_AFTER = timedelta(days=3)
"""How long every attempt must have failed before a subscription is disabled."""


def delay_seconds(attempts_made: int, *, base_seconds: float, fraction: float) -> float:
    """Return the delay after this many attempts; `fraction` is a random number from 0 to 1."""
    doublings = min(attempts_made - 1, 30)  # beyond it the number overflows, and the cap holds long before
    longest = min(base_seconds * 2.0**doublings, max(LONGEST_SECONDS, base_seconds))
    return longest * (0.5 + 0.5 * fraction)


def next_attempt(
    attempts_made: int,
    *,
    created_at: datetime,
    now: datetime,
    base_seconds: float,
    give_up_seconds: float,
    fraction: float,
) -> datetime | None:
    """Return when to try again; None: the delivery is given up."""
    due = now + timedelta(seconds=delay_seconds(attempts_made, base_seconds=base_seconds, fraction=fraction))
    return None if due > created_at + timedelta(seconds=give_up_seconds) else due


def is_to_be_disabled(failing_since: datetime | None, now: datetime) -> bool:
    return failing_since is not None and now - failing_since >= DISABLED_AFTER
