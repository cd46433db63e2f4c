"""Load of the machine by other work while this process is timed: share of the cores, paging, load. Linux only.

`/proc/stat` counts all work on a core, also in other containers; this process's own time is subtracted. Cores that
this process may not run on are left out. Where a file is missing, the figure is None: unknown.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_IDLE = (3, 4)  # idle and iowait, of the columns user nice system idle iowait irq softirq steal
_COLUMNS = 8
_PAGING = ("pswpin", "pswpout")


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    own_seconds: float
    busy_seconds: float | None
    paged: int | None


class MachineWatch:
    """Observes the machine from its creation until it is read."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self.proc = proc
        self.before = self._look()

    def read(self) -> dict[str, Any]:
        """Return what happened since: `others_cores` is how many cores other work used on average."""
        now = self._look()
        seconds = now.at - self.before.at
        others = None
        if now.busy_seconds is not None and self.before.busy_seconds is not None and seconds > 0:
            own = now.own_seconds - self.before.own_seconds
            others = max((now.busy_seconds - self.before.busy_seconds - own) / seconds, 0.0)
        paged = None if now.paged is None or self.before.paged is None else now.paged - self.before.paged
        return {"others_cores": others, "pages_swapped": paged, "load_average": _load_average()}

    def _look(self) -> _Reading:
        return _Reading(time.monotonic(), time.process_time(), self._busy_seconds(), self._paged())

    def _busy_seconds(self) -> float | None:
        """Seconds that the cores this process may use were busy, all together."""
        lines = _lines(self.proc / "stat")
        own = {f"cpu{number}" for number in usable_cores()}
        columns = [line.split() for line in lines if line.split(" ", 1)[0] in own]
        if not columns:
            return None
        ticks = sum(int(n) for row in columns for i, n in enumerate(row[1 : 1 + _COLUMNS]) if i not in _IDLE)
        return ticks / os.sysconf("SC_CLK_TCK")

    def _paged(self) -> int | None:
        """Pages swapped in and out since the machine started."""
        counts = dict(line.split() for line in _lines(self.proc / "vmstat"))
        return sum(int(counts[name]) for name in _PAGING) if counts.keys() >= set(_PAGING) else None


def usable_cores() -> set[int]:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None
