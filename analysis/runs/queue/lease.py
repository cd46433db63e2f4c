"""What the owner of a running run passes with every write, and the log lines it stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class Lease(TypedDict):
    """The run and the token that prove ownership in every write to a running run."""

    run_id: int
    token: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line for the run's log."""

    level: str
    message: str
