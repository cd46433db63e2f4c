"""Observes other work on the machine while this process is timed: cores used, paging, load. Linux only.

`/proc/stat` counts all work on a core, also in other containers; this process's own time is subtracted. Cores that
this process may not run on are left out. Where a file is missing, the figure is None: unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .host import lines_of

_IDLE = (3, 4)  # idle and iowait among the columns user nice system idle iowait irq softirq steal
_COLUMNS = 8
_PAGING = ("pswpin", "pswpout")
LEAST_SECONDS = 1.0
LOOK_SECONDS, SHARED_FRACTION = 0.1, 0.15
"""How long other work is looked for before a training starts; the share of the cores from which they are shared."""
_POLICIES, PASSIVE = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"), "passive"


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    own_seconds: float
    busy_seconds: float | None
    paged: int | None


class MachineWatch:
    """Observes the machine until it is read; `own_seconds` is the core time of the timed work, as `tree_seconds`."""

    def __init__(self, proc: Path = Path("/proc"), own_seconds: Callable[[], float] = time.process_time) -> None:
        self.proc, self.own_seconds = proc, own_seconds
        self.before = self._look()

    def read(self) -> dict[str, Any]:
        """Return what happened since the start: `others_cores` is how many cores other work used on average."""
        now = self._look()
        seconds = now.at - self.before.at
        others = None
        if now.busy_seconds is not None and self.before.busy_seconds is not None and seconds > 0:
            own = now.own_seconds - self.before.own_seconds
            others = max((now.busy_seconds - self.before.busy_seconds - own) / seconds, 0.0)
        paged = None if now.paged is None or self.before.paged is None else now.paged - self.before.paged
        return {"others_cores": others, "pages_swapped": paged, "load_average": _load_average()}

    def others_so_far(self) -> float | None:
        """Return the cores that other work used; None in the first second, which shows too little."""
        return self.read()["others_cores"] if time.monotonic() - self.before.at >= LEAST_SECONDS else None

    def _look(self) -> _Reading:
        at, own_seconds, busy_seconds = time.monotonic(), self.own_seconds(), self._busy_seconds()
        counts = dict(line.split() for line in lines_of(self.proc / "vmstat"))
        # pages swapped in and out since the machine started
        paged = sum(int(counts[name]) for name in _PAGING) if counts.keys() >= set(_PAGING) else None
        return _Reading(at, own_seconds, busy_seconds, paged)

    def _busy_seconds(self) -> float | None:
        """Return the seconds that the cores this process may use were busy, added up."""
        lines = lines_of(self.proc / "stat")
        own = {f"cpu{number}" for number in usable_cores()}
        columns = [line.split() for line in lines if line.split(" ", 1)[0] in own]
        if not columns:
            return None
        ticks = sum(int(n) for row in columns for i, n in enumerate(row[1 : 1 + _COLUMNS]) if i not in _IDLE)
        return ticks / os.sysconf("SC_CLK_TCK")


def tree_seconds(proc: Path = Path("/proc")) -> float:
    """Return the core time of this process and all its descendants, including those that have ended."""
    stats = {int(f.name): _stat(f) for f in proc.iterdir() if f.name.isdigit()}
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    waiting, ticks = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        ticks += stats.get(pid, (0, 0))[1]
        waiting += children.get(pid, [])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(folder: Path) -> tuple[int, int]:
    """Return the parent of a process, and the ticks used by it and its ended children; zeros if it is gone."""
    try:
        columns = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(columns[1]), sum(map(int, columns[11:15]))  # ppid; utime, stime, cutime, cstime


def waiting_policy(device: str) -> dict[str, str]:
    """Return the variable by which threads that wait for each other sleep, where other work uses the cores.

    A thread that spins keeps a core from the one it waits for. On a quiet machine that costs nothing, and spinning is
    what the user's own training does.
    """
    if device not in ("cpu", "auto") or any(os.environ.get(name) for name in _POLICIES):
        return {}
    watch = MachineWatch(own_seconds=tree_seconds)
    time.sleep(LOOK_SECONDS)
    others = watch.read()["others_cores"] or 0.0
    return {_POLICIES[0]: PASSIVE} if others > SHARED_FRACTION * len(usable_cores()) else {}


def do_threads_sleep(threads: int) -> bool:
    """Whether the threads of this process that wait for each other leave their core to others."""
    return threads == 1 or os.environ.get(_POLICIES[0], "").lower() == PASSIVE


def usable_cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None
