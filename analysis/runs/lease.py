"""What a running run's owner shows with every write, and what it stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class Lease(TypedDict):
    """What the owner of a running run shows with every write."""

    run_id: int
    token: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line for the run's log."""

    level: str
    message: str
