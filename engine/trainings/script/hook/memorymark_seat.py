"""Holds a training between blocks of timed steps: at the end of a step it waits, and goes on when it is its turn."""

from __future__ import annotations

import os
import time
from typing import Any

TURNS = "turns"
"""The pipe beside the records: each line is a turn, with the number of its steps."""
OTHER_RANKS_SECONDS = 60


def goes_on(watched: Any) -> bool:
    """Wait at the end of a block for the next turn of a training that is held; whether it goes on."""
    if not watched.is_alone():
        time.sleep(OTHER_RANKS_SECONDS)  # the other ranks finish their step; MemoryMark then ends them all
        return False
    if not watched.settings.get("seat"):
        return False
    with open(os.path.join(watched.settings["folder"], TURNS)) as pipe:
        turn = pipe.readline()
    if turn.strip():
        _begin_block(watched, int(turn))
    return bool(turn.strip())


def _begin_block(watched: Any, steps: int) -> None:
    """Forget the block before: the first step of this one takes its time from now on, not from the end of that."""
    names = [name for _, name, *_ in watched.marks]
    del watched.marks[names.index("memory_read") + 1 :]
    watched.cpu.held = None  # its allocations are in the first record
    watched.is_ended, watched.settings["timed_steps"] = False, steps
    watched.steps.begin_timing()
    for mark in watched.marks:
        if mark[1] == "step":
            mark[0] = watched.steps.timed_from
