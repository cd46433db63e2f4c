"""PURE: the figures of an accelerator's out-of-memory message, in bytes, in the wordings of torch since 1.0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text.units import GIB, KIB, MIB

_SIZE = r"(\d+(?:\.\d+)?) ?(GiB|MiB|KiB|GB|MB|KB|bytes|B)\b"
_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": KIB, "GB": GIB, "MB": MIB, "KB": KIB, "bytes": 1, "B": 1}
"""MPS writes GB, and divides by 2**30."""
_PATTERNS = {
    "requested": rf"[Tt]ried to allocate {_SIZE}",
    "total": rf"total capaci?ty of {_SIZE}|{_SIZE};? total capacity|max allowed: {_SIZE}",
    "free": rf"of which {_SIZE} is free|; {_SIZE} free",
    "own": rf"this process has {_SIZE} memory in use",
    "allocated": rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated|MPS allocated: {_SIZE}",
    "in_pieces": rf"{_SIZE} is reserved by PyTorch but unallocated|; {_SIZE} cached",
    "reserved": rf"{_SIZE} reserved in total by PyTorch",
    "beside": rf"other allocations: {_SIZE}",
}
_OF_A_PROCESS = re.compile(rf"Process (\d+) has {_SIZE} memory in use")
CONTEXT_BYTES, CLEARLY_OTHERS = GIB, 0.25
"""What a process usually holds of a card beside its allocator: context, kernels, libraries. Where the message does not
name its own part, what is left counts as another's from this share of the card on."""


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """What a message says; None: it does not."""

    requested: int | None = None
    total: int | None = None
    free: int | None = None
    own: int | None = None
    """All of this process, beside PyTorch's too."""
    allocated: int | None = None
    in_pieces: int | None = None
    """What the allocator keeps in pieces that no tensor uses."""
    others: int = 0
    """What other processes hold."""
    processes: tuple[int, ...] = ()
    """The numbers of these processes, where they are known."""

    @property
    def has_figures(self) -> bool:
        return self.requested is not None and self.total is not None


def read_figures(text: str) -> OutOfMemory:
    """Read the last message of a text."""
    message = _last_message(text)
    found = {name: size for name, pattern in _PATTERNS.items() if (size := _size(pattern, message)) is not None}
    reserved = found.pop("reserved", None)
    allocated = found.get("allocated")
    if (beside := found.pop("beside", None)) is not None:  # of MPS: of this process, too
        found["own"], found["free"] = (
            (allocated or 0) + beside,
            max(0, found.get("total", 0) - (allocated or 0) - beside),
        )
    if reserved is not None and allocated is not None:
        found.setdefault("in_pieces", max(0, reserved - allocated))
    processes = dict(_processes(message))
    kept = None if allocated is None else allocated + found.get("in_pieces", 0)
    if "own" not in found and kept is not None:
        alike = [pid for pid, size in processes.items() if kept <= size <= kept + max(CONTEXT_BYTES, kept // 4)]
        own = min(alike, key=processes.__getitem__, default=None)
        if own is not None:  # in a container the message cannot tell which process is its own
            found["own"] = processes.pop(own)
    others = sum(processes.values())
    if {"total", "free"} <= found.keys():
        rest = found["total"] - found["free"]
        unseen = rest - found["own"] if "own" in found else rest - kept - CONTEXT_BYTES if kept is not None else 0
        is_clear = "own" in found or unseen >= CLEARLY_OTHERS * found["total"]
        others = max(others, unseen if is_clear else 0)
    return OutOfMemory(**found, others=others, processes=tuple(processes))


def _last_message(text: str) -> str:
    """Return the text from the last request on, with the line that it stands in; lines of a log may be wrapped."""
    joined = " ".join(text.split())
    at = max(joined.rfind("ried to allocate"), joined.rfind("MPS allocated"))
    starts = [joined.rfind(lead, 0, at) for lead in ("out of memory", "OutOfMemory", "Error:")] if at >= 0 else [0]
    return joined[max(0, *starts) :][:2_000]


def _size(pattern: str, message: str) -> int | None:
    found = re.search(pattern, message)
    return None if found is None else _bytes(*[part for part in found.groups() if part])


def _bytes(figure: str, unit: str) -> int:
    return round(float(figure) * _UNITS[unit])


def _processes(message: str) -> Iterator[tuple[int, int]]:
    for pid, figure, unit in _OF_A_PROCESS.findall(message):
        yield int(pid), _bytes(figure, unit)
