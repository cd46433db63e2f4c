"""What the processes of a start have done so far, when that is said, and how they ended: nobody should wait in silence.

A start without a step may wait for a download, compile for minutes, or train something that torch's hooks do not see.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ..hook.memorymark_seen import FACTS, SUFFIX
from .file_changes import FileChanges

LEAST_SECONDS = 10.0
UNSEEN_SECONDS = 20.0  # before torch was imported nothing tells how quick this machine is
AGAIN_SECONDS = 60.0
LOOK_SECONDS = 1.0
TIMES_THE_IMPORT = 2
BYTES = 8 * len(FACTS)
KEPT_OUT = "`python -I`, `-S` and `-E`, containers, and launchers that overwrite PYTHONPATH, keep the hook out"


@dataclass(frozen=True, slots=True)
class Seen:
    """Counts of one process, and times of `time.monotonic`; `forwards` are in training mode with gradients."""

    began: float = 0
    importing: float = 0
    imported: float = 0
    forwards: float = 0
    evaluations: float = 0
    batches: float = 0
    batch_size: float = 0
    optimizers: float = 0
    steps: float = 0
    stepped: float = 0
    ended: float = 0

    @property
    def progress(self) -> tuple[float, ...]:
        """How far it came: of several processes the one that trains is the furthest, a launcher or a worker is not."""
        facts = (self.steps, self.forwards, self.evaluations, self.batches, self.optimizers)
        return (*facts, bool(self.imported), bool(self.importing), self.began)


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What was seen when a start was over: of how many Python processes, whether one imported torch, and in words.

    `training` are those that made optimizer steps side by side; `has_evaluated`: a module ran otherwise.
    """

    processes: int
    has_torch: bool
    text: str
    training: int = 0
    has_evaluated: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How one start ended: of the whole command, where its processes were not ended by MemoryMark."""

    exit_status: int | None = None
    timed_out_after_seconds: float | None = None
    kernel_killed: bool = False
    last_lines: str = ""
    last_output: tuple[str, ...] = ()
    """The last lines of its output, more of them, for an error that ends the run."""
    log: Path | None = None
    """Its whole output, where it failed."""
    seen: LastSeen | None = None
    began: float = 0.0
    """When it was started: a time of `time.monotonic`, as the hook's marks are."""
    wall_seconds: float = 0.0
    changes: FileChanges = FileChanges()
    """The start's changes of files, before these were undone."""

    @property
    def has_evaluated(self) -> bool:
        return self.seen is not None and self.seen.has_evaluated

    @property
    def last_words(self) -> str:
        return f"; seen last: {self.seen.text}{self.last_lines}" if self.seen else self.last_lines


def read_seen(notes: Path) -> list[Seen]:
    """Return what each Python process with the hook has left in the folder so far."""
    contents = []
    for path in notes.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):  # a process that restarts itself writes its file anew
            contents.append(path.read_bytes())
    whole = [array("d", each) for each in contents if len(each) == BYTES]  # one may be about to be written
    return [Seen(**dict(zip(FACTS, values, strict=True))) for values in whole]


def last_seen(notes: Path, began: float) -> LastSeen:
    processes = read_seen(notes)
    has_torch = any(each.imported for each in processes)
    text = describe(processes, began, time.monotonic())
    has_evaluated = any(each.evaluations for each in processes)
    return LastSeen(len(processes), has_torch, text, trained_side_by_side(processes), has_evaluated)


def trained_side_by_side(processes: Collection[Seen]) -> int:
    """Return how many made an optimizer step and lived with the one that made the latest: it counts, too."""
    trained = [each for each in processes if each.steps]
    _, latest_began = max(((each.stepped, each.began) for each in trained), default=(0.0, 0.0))
    return sum(not each.ended or each.ended > latest_began for each in trained)


def is_another_about_to_train(notes: Path) -> bool:
    """Whether a running process has loaded all that a training needs, and none made a step. Launchers load less."""
    running = [each for each in read_seen(notes) if not each.ended]
    return not any(each.steps for each in running) and any(each.forwards or each.optimizers for each in running)


def describe(processes: Collection[Seen], began: float, now: float) -> str:
    """Say how far the training came: ``torch was imported 12 s ago; no optimizer step yet; ...``."""
    running = [each for each in processes if not each.ended] or processes
    if not running:
        return f"no Python process was seen yet ({now - began:.0f} s): {KEPT_OUT}"
    seen = max(running, key=lambda each: each.progress)
    if seen.imported:
        ended = ["that process has ended"] if seen.ended else []
        return "; ".join([f"torch was imported {now - seen.imported:.0f} s ago", *_training(seen, now), *ended])
    if seen.importing and not seen.ended:
        return f"torch is being imported, for {now - seen.importing:.0f} s so far"
    is_another = any(each.imported for each in processes)
    return f"no {'running ' if is_another else ''}Python process has imported torch yet ({now - began:.0f} s)"


def describe_so_far(processes: Collection[Seen], began: float, now: float) -> str:
    """Write "loading (10 s)" in the first minute of a start whose model has not run; later what is seen of it."""
    has_begun = any(each.forwards or each.evaluations or each.steps or each.ended for each in processes)
    is_loading = bool(processes) and not has_begun and now - began < AGAIN_SECONDS
    return f"loading ({now - began:.0f} s)" if is_loading else describe(processes, began, now)


def _training(seen: Seen, now: float) -> list[str]:
    if seen.steps:
        steps = f"{_count(seen.steps, 'optimizer step')}, the last {now - seen.stepped:.0f} s ago"
    else:
        steps = "no optimizer step yet"
    if seen.forwards:
        forwards = f"{_count(seen.forwards, 'forward pass', 'es')} in training mode"
    elif seen.evaluations:
        forwards = f"{_count(seen.evaluations, 'forward pass', 'es')}, none in training mode with gradients"
    else:
        forwards = "no model ran forward"
    parts = [steps, forwards]
    if seen.forwards and not seen.optimizers:
        parts.append("no optimizer of torch.optim was made")
    if seen.batches:
        size = f"batches of {seen.batch_size:.0f}" if seen.batch_size else "batches"
        parts.append(f"it draws {size} from a DataLoader")
    return parts


def _count(number: float, what: str, plural: str = "s") -> str:
    return f"{number:.0f} {what}{'' if number == 1 else plural}"


class News:
    """When a start is spoken of: after twice its time to import torch, ever more rarely, not while it makes steps."""

    def __init__(self, notes: Path, began: float) -> None:
        self.notes, self.began = notes, began
        self.look_at, self.said_at = began + LEAST_SECONDS, -inf

    def due(self) -> str | None:
        now = time.monotonic()
        if now < self.look_at:
            return None
        processes = read_seen(self.notes)
        self.look_at = now + LOOK_SECONDS
        if not is_due(processes, self.began, self.said_at, now):
            return None
        self.said_at = now
        return describe_so_far(processes, self.began, now)


def is_due(processes: Collection[Seen], began: float, said_at: float, now: float) -> bool:
    """Whether a start that began then, and was last spoken of at `said_at`, has been silent for long."""
    imported = min((each.imported for each in processes if each.imported), default=None)
    patience = UNSEEN_SECONDS if imported is None else max(LEAST_SECONDS, TIMES_THE_IMPORT * (imported - began))
    since = max([began, *(each.stepped for each in processes)])
    again = min(max(said_at - began, patience), AGAIN_SECONDS)
    return now >= max(since + patience, said_at + again)
