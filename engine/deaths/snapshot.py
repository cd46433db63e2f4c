"""Reads a memory snapshot of torch (`torch.cuda.memory._dump_snapshot`): what was live, in pieces, and refused.

A pickle may run any code of its maker: this reader makes numbers, texts, lists and dicts alone.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ..errors import SpecError
from ..text.printable import printable
from .cause import Death, cause_on_a_device
from .figures import OutOfMemory
from .moments import Moment
from .signs import Cause

SUFFIX = ".pickle"
PLACES_SHOWN = 5
_LIVE = ("active_allocated", "active_awaiting_free")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it wants {module}.{name}, and a snapshot needs none")


def read_snapshot(path: Path) -> Death:
    """Return what the snapshot shows. Raises SpecError where the file is none."""
    try:
        with path.open("rb") as file:
            snapshot = _plain(file)
        segments = snapshot["segments"]
        live = _live_bytes(segments)
        traces = [event for trace in snapshot.get("device_traces", ()) for event in trace]
        reserved = sum(segment["total_size"] for segment in segments)
    except OSError as error:
        raise SpecError("file", f"{path} cannot be read: {error.strerror}") from error
    except (
        pickle.UnpicklingError,
        EOFError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        raise SpecError("file", f"{path} is no memory snapshot of torch: {error}") from None
    allocated = live.total()
    refused = next((event for event in reversed(traces) if event.get("action") == "oom"), None)
    free = refused.get("device_free") if refused else None
    figures = OutOfMemory(
        requested=refused["size"] if refused else None,
        total=reserved + free if free is not None else None,
        free=free,
        allocated=allocated,
        in_pieces=reserved - allocated,
    )
    cause = cause_on_a_device(figures, Moment.UNKNOWN, None)
    cause = Cause.CANNOT_TELL if cause is Cause.TOO_LARGE else cause  # what others held is in no snapshot
    places = tuple((place, size) for place, size in live.most_common(PLACES_SHOWN) if place)
    return Death(cause, figures=figures, is_of_a_device=refused is not None, places=places)


def _plain(file: BinaryIO) -> Mapping[str, Any]:
    loaded = _PlainUnpickler(file).load()
    return loaded if isinstance(loaded, dict) else {"segments": loaded}  # torch 1 kept the segments alone


def _live_bytes(segments: Any) -> Counter[str]:
    """Return the live bytes by the line of the program that asked for them; "" where that was not recorded."""
    found = Counter[str]()
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] in _LIVE:
                found[_place(block.get("frames") or _of_history(block))] += block["size"]
    return found


def _of_history(block: Mapping[str, Any]) -> Any:
    return (block.get("history") or [{}])[-1].get("frames") or ()


def _place(frames: Any) -> str:
    python = (each for each in frames if each["filename"].endswith((".py", "<stdin>")))
    own = (each for each in python if "/torch/" not in each["filename"])
    frame = next(own, None)
    return printable(f"{frame['filename']}:{frame['line']} in {frame['name']}") if frame else ""
