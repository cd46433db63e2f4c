"""Counts the steps of a training's optimizers, and decides which of them is the last whose memory or time is wanted."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from typing import Any

import memorymark_read as read

BY_HAND = 0
"""Stands for the optimizer in the marks of a script that has none, and changes its weights itself."""
BUSY_TIMES = 5
"""Other programs and slow loaders may make quick steps take this many times their own time."""
UNTIL_IDLE = 8
"""An optimizer may step less often than the others: it is waited for until one has made this many times the steps."""


class Steps:
    """The optimizer steps so far. `counts` are by the number of an optimizer: see `Stepped`."""

    def __init__(self, watched: Any) -> None:
        self.watched = watched
        self.counts: dict[int, int] = {}
        self.optimizers: set[int] = set()  # the ids of those that were made
        self.stepped, self.turns = Stepped(), Turns()
        self.consumed: dict[int, int] = {}  # by optimizer: forward passes and batches until its last step
        self.first_timed, self.timed_from, self.computed_from, self.thread_from = 0, 0.0, 0.0, 0.0
        self.collecting_since: float | None = None
        self.own_seconds = self.own_from = 0.0  # what the watch itself took, and had taken when the block began

    def made_optimizer(self, make: Any, optimizer: Any, *others: Any, **options: Any) -> None:
        is_first, watched = not self.optimizers, self.watched
        self.optimizers.add(id(optimizer))
        self.counts.pop(BY_HAND, None)  # steps of a network that was trained before this optimizer was made
        watched.seen.count("optimizers")
        make(optimizer, *others, **options)
        self.stepped.made(optimizer)
        if is_first and not self.counts and not watched.is_timing:  # before the first optimizer nothing was trained
            watched.forget_start()

    def end(self, optimizer: Any) -> None:
        began, block = time.monotonic(), self.timed_from
        self.count(self.stepped.number(optimizer))
        if self.timed_from == block:  # else it waited for its turn
            self.own_seconds += time.monotonic() - began

    def count(self, number: int) -> None:
        """Count a step of the optimizer with this number, and go on or end as the steps so far say."""
        watched = self.watched
        if self._is_part_of_the_last(number):
            return
        watched.seen.count("steps")
        watched.seen.now("stepped")
        watched.place()
        if watched.is_waiting:  # no forward pass was seen: the steps after this one are watched
            watched.trains_on(watched.torch.device("cuda" if watched.torch.cuda.is_initialized() else "cpu"))
            return
        if watched.is_timing and watched.device.type == "cuda":
            watched.torch.cuda.synchronize(watched.device)
        self.counts[number] = self.counts.get(number, 0) + 1
        own = watched.cards.end_step(number) if watched.cards.numbers and not watched.is_timing else ()
        watched.mark("step", number, *own)
        watched.forwards.given = {}
        watched.loaders.stepped()
        if self.turns.step(watched.forwards.thread if watched.forwards.depth else None):
            watched.end("done")
        fewest = self.least()
        if not watched.is_timing:
            if not self._has_shown_all(fewest):
                return
            watched.begin_timing()
        is_late = time.monotonic() > self.timed_from + watched.settings["timed_seconds"]
        if fewest >= min(self.first_timed + watched.settings["timed_steps"], self.last(fewest, is_late=is_late)):
            watched.end("done")

    def _is_part_of_the_last(self, number: int) -> bool:
        """Whether nothing was consumed since the last step: DeepSpeed makes one for each group of parameters."""
        consumed = self.watched.forwards.trained + self.watched.loaders.draws
        if "deepspeed" in sys.modules and consumed and self.consumed.get(number) == consumed:
            return True
        self.consumed[number] = consumed
        return False

    def _has_shown_all(self, fewest: int) -> bool:
        """Whether the memory of enough steps was read."""
        wanted = self._steps_to_read()
        if self.watched.epoch is not None:
            return bool(self.watched.epoch.has_seen_all(fewest, wanted))
        return fewest >= wanted and (max(self.counts.values()) >= UNTIL_IDLE * wanted or not self.is_one_idle())

    def _steps_to_read(self) -> int:
        """Return for how many steps to read the memory: fewer slow ones, more quick ones; of a group all the same."""
        settings, now, is_alone = self.watched.settings, time.monotonic(), self.watched.is_alone()
        wanted, least, still = settings["memory_steps"], settings.get("least_steps"), settings.get("still_steps")
        began = next((at for at, name, *_ in self.watched.marks if name == "step"), now)
        is_late = least and is_alone and now > began + settings["memory_seconds"]
        self.computed_from = self.computed_from or time.process_time()
        is_quick = time.process_time() < self.computed_from + settings.get("still_seconds", 0.0)
        if still and is_quick and is_alone and now < began + BUSY_TIMES * settings["still_seconds"]:
            wanted = max(wanted, still)
        return int(least if is_late else wanted)

    def last(self, now: int, *, is_late: bool) -> int:
        """Return the step after which all ranks end: a file of the first late rank tells that it makes one more."""
        if self.watched.is_alone():
            return now if is_late else sys.maxsize
        path = os.path.join(self.watched.settings["folder"], "last-step")
        if is_late and not os.path.exists(path):
            with open(f"{path}.{os.getpid()}", "w") as file:
                file.write(str(now + 1))
            os.replace(file.name, path)
        if not os.path.exists(path):
            return sys.maxsize
        with open(path) as file:
            return int(file.read())

    def least(self) -> int:
        return min(self.counts.values(), default=0)

    def is_one_idle(self) -> bool:
        """Whether an optimizer has made no step yet. Objects are looked through only where the counts say so."""
        return len(self.counts) < len(self.optimizers) and self.idle() > 0

    def idle(self) -> int:
        return int(read.idle_optimizers(self.watched.torch, self.optimizers, self.stepped.ids() | self.counts.keys()))

    def begin_timing(self) -> None:
        if self.collecting not in gc.callbacks:
            gc.collect()  # what reading the memory left would make the next collections longer, and rarer
            gc.callbacks.append(self.collecting)
        self.first_timed, self.timed_from, self.thread_from = self.least(), time.monotonic(), time.thread_time()
        self.own_from = self.own_seconds

    def own_seconds_of_a_step(self) -> float:
        """Return what the watch itself takes of each timed step on a CPU: a tenth of one that takes a millisecond.

        A card computes meanwhile, and a step's end waits for it.
        """
        if not self.watched.is_timing or self.watched.device.type != "cpu":
            return 0.0
        return float((self.own_seconds - self.own_from) / max(self.least() - self.first_timed, 1))

    def collecting(self, stage: str, info: Any) -> None:
        """Mark the seconds of a full garbage collection: rare, and long in a training that makes many objects."""
        if info["generation"] < 2:
            return
        if stage == "start":
            self.collecting_since = time.monotonic()
        elif self.collecting_since is not None:
            self.watched.mark("collected", time.monotonic() - self.collecting_since)

    def computing_fraction(self) -> float | None:
        """Return the share of the timed steps in which this thread, which trains, had a core; None without any.

        Threads that spin while they wait for each other have a core, too, and compute nothing.
        """
        watched = self.watched
        if not self.timed_from or watched.device is None or watched.device.type != "cpu":
            return None
        if watched.torch.get_num_threads() > 1 and os.environ.get("OMP_WAIT_POLICY", "").lower() != "passive":
            return None
        return float((time.thread_time() - self.thread_from) / (time.monotonic() - self.timed_from))


class Stepped:
    """The optimizers that made a step, each with the number under which its steps are counted.

    A script may make a new optimizer each epoch: those over the same weights are counted together. The number is the
    `id` of the first of its class over these weights, which may live beside one made anew: nothing is collected, as the
    memory it holds is the training's. New weights may take the place of others: see `_follows`.
    """

    def __init__(self) -> None:
        self.numbers: Any = weakref.WeakKeyDictionary()
        self.made_at: Any = weakref.WeakKeyDictionary()  # how many steps there were when an optimizer was made
        self.first: dict[tuple[Any, ...], int] = {}
        self.shapes: dict[int, tuple[Any, ...]] = {}
        self.last: dict[int, int] = {}  # which of all steps was the last of a number
        self.steps = 0

    def made(self, optimizer: Any) -> None:
        self.made_at[optimizer] = self.steps

    def number(self, optimizer: Any) -> int:
        known: int | None = self.numbers.get(optimizer)
        if known is None:
            weights = [t for group in optimizer.param_groups for t in group["params"]]
            kind, shapes = ((type(optimizer), *map(part, weights)) for part in (id, lambda t: tuple(t.shape)))
            free = id(optimizer) if id(optimizer) not in self.first.values() else -id(optimizer)
            known = self.first.get(kind, self._follows(optimizer, shapes)) or free
            self.numbers[optimizer] = self.first[kind] = known
            self.shapes[known] = shapes
        self.steps += 1
        self.last[known] = self.steps
        return known

    def _follows(self, optimizer: Any, shapes: tuple[Any, ...]) -> int | None:
        """Return the number that an optimizer over new weights goes on with: an idle one's, alike or gone; or None."""
        living, made_at = set(self.numbers.values()), self.made_at.get(optimizer, 0)
        over = [number for number, last in self.last.items() if last <= made_at]
        alike = [number for number in over if self.shapes[number] == shapes]
        return next((number for number in (*alike, *over) if number in alike or number not in living), None)

    def ids(self) -> set[int]:
        return set(map(id, self.numbers.keys()))


class Turns:
    """The threads whose optimizers stepped, and how many train in turns: their steps cannot be told apart."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.trainings = 1

    def step(self, running: int | None) -> bool:
        """Note a step of this thread; whether others step between two of its own, or one runs forward now."""
        now = threading.get_ident()
        if now in self.threads[:-1] or running not in (None, now):
            self.trainings = len({each.ident for each in threading.enumerate()} & {*self.threads, now, running})
        self.threads = [*(each for each in self.threads if each != now), now]
        return self.trainings > 1
