"""Starts that wait for their turn: a further block costs its steps alone, and sees the same machine as the last."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Generic, Self, TypeVar

from ....facts.result import DeviceFacts
from ....machine.host import available_bytes
from ..notes.file_changes import Way, WrittenFiles
from ..notes.progress import Ended
from ..notes.reading import Reading
from .launch import OnTick, Started, Watching

Trained = TypeVar("Trained", bound=Hashable)

Start = Callable[[Watching], tuple[list[Reading], Ended]]
PROCESS_BYTES = 1 << 30
"""What a process takes of a host beside its tensors, with some to spare."""
SHARE_OF_CARD = 0.95


class HeldStarts(Generic[Trained]):
    """Held starts by their training (a batch size, or settings). All end with the context."""

    def __init__(self, files: WrittenFiles) -> None:
        self.files, self.turns = files, 0
        self.held: dict[Trained, Started] = {}
        is_apart = files.protection in (None, Way.LAYERS)  # what one start writes, the others do not see
        self.may_hold = is_apart and hasattr(os, "mkfifo")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for trained in tuple(self.held):
            self.release(trained)

    def started(
        self, trained: Trained, watching: Watching, once: Start, *, is_room: Callable[[], bool]
    ) -> tuple[list[Reading], Ended]:
        """Start a training, to be held where it then waits; one that fails beside others is started once more."""
        self.release(trained)
        if self.held and not is_room():
            self.close()
        readings, ended = once(replace(watching, seat=self.may_hold and not watching.whole_run))
        has_failed = ended.timed_out_after_seconds is None and not any(each.is_done for each in readings)
        if has_failed and self.held.keys() - {trained}:
            self.close()
            readings, ended = once(replace(watching, seat=False))
            self.may_hold = not any(each.is_done for each in readings)
        return readings, ended

    def release(self, trained: Trained) -> None:
        if (held := self.held.pop(trained, None)) is not None:
            self._end(held)

    def turn(self, trained: Trained, steps: int, seconds: float, on_tick: OnTick) -> list[Reading] | None:
        """Give a held start a turn of `steps` steps; None if no start is held, or it ended within its turn."""
        if (held := self.held.pop(trained, None)) is None:
            return None
        held.go_on(steps)
        readings = held.watch(seconds, on_tick)
        if not held.is_waiting():
            self._end(held)
            return None
        self.held[trained] = held
        self.turns += 1
        return readings

    def _end(self, held: Started) -> None:
        _, ended = held.end()
        self.files.take(ended.changes)


def is_room(device: DeviceFacts, own_bytes: int, held_bytes: int) -> bool:
    """Whether a start of `own_bytes` fits beside those that are held, by what each took when it was alone."""
    if device.kind == "cpu":
        return own_bytes + PROCESS_BYTES < available_bytes()
    return own_bytes + held_bytes < SHARE_OF_CARD * device.capacity_bytes
