"""PURE: what the ranks of several hosts noted, and how their starts ended, as of one start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import CommandUntunable
from ...text.printable import printable
from ..reading import Reading

NAME_MOST = 100


def shift_clock(noted: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return what a process noted with its times moved, from the clock of its host to this one's.

    >>> shift_clock({"rank": 2, "marks": [[5.0, "step", 1]]}, 10.0)
    {'rank': 2, 'marks': [[15.0, 'step', 1]]}
    """
    return {**noted, "marks": [[at + seconds, *details] for at, *details in noted["marks"]]}


def have_all_ended(statuses: Sequence[int | None]) -> bool:
    """Whether a start on several hosts is over: everywhere, or somewhere with an error.

    One that has ended in order waits for the others, as torchrun itself does.

    >>> have_all_ended([0, None]), have_all_ended([None, 1]), have_all_ended([0, 0])
    (False, True, True)
    """
    return None not in statuses or any(statuses)


def status_of_all(statuses: Sequence[int | None]) -> int | None:
    """Return the exit status of a start: of the first host that failed; None where one was ended by its watcher.

    >>> status_of_all([None, 1]), status_of_all([0, None]), status_of_all([0, 0])
    (1, None, 0)
    """
    return next((status for status in statuses if status), None if None in statuses else 0)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return what the hosts are called, so that no two are called the same.

    >>> distinct_names(["a", "a", "b"])
    ['a', 'a (1)', 'b']
    """
    shown = [printable(name, NAME_MOST - len(" (65536)")) or "a host" for name in names]
    return [name if name not in shown[:number] else f"{name} ({number})" for number, name in enumerate(shown)]


def lines_of_host(name: str, over: Mapping[str, Any]) -> list[str]:
    """Return the lines of the output that is shown of a start: of another host, behind its name."""
    seen = [f"[{name}] {over['seen']}"] if over["seen"] else []
    return [*(f"[{name}] {line}" for line in over["last_output"]), *seen]


def host_of(reading: Reading) -> str:
    """Return the name of the host that a process ran on, where several trained; empty on one."""
    return str(reading.data.get("host") or "")


def hosts_of(readings: Sequence[Reading]) -> tuple[str, ...]:
    """Return the host of each rank; none where all ran on one."""
    hosts = tuple(map(host_of, readings))
    return hosts if any(hosts) else ()


def check_same_gpu(readings: Sequence[Reading]) -> None:
    """Raise CommandUntunable where the ranks' GPUs are not all of one kind: the result is of one."""
    found = {(r.card["name"], r.card["total_bytes"]): r for r in readings if r.card}
    if len(found) > 1:
        places = ((name, f"on {host_of(r)}" if host_of(r) else f"of rank {r.rank}") for (name, _), r in found.items())
        shown = ", ".join(sorted(f"{printable(name)} {place}" for name, place in places))
        raise CommandUntunable("gpus_differ", f"the GPUs of the ranks differ: {shown}; the result would be of one")
