"""Follows the cards of a training: which they are, the limit of their memory, and the peak of each optimizer step."""

from __future__ import annotations

import weakref
from typing import Any

import memorymark_read as read

COUNTED = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
WITHOUT_ROUNDING, HELD = "requested_bytes.all.peak", "allocated_bytes.all.current"


class Cards:
    """The cards that the outermost modules compute on. torch counts one peak at a time, and each step has its own.

    `most` has by card what torch counted at most before its counters were set back.
    """

    def __init__(self, watched: Any) -> None:
        self.watched = watched
        self.numbers: set[int] = set()
        self.met: Any = weakref.WeakSet()  # the outermost modules whose cards are known
        self.most: dict[int, dict[str, int]] = {}
        self.since: dict[int, int] = {}  # by optimizer the most since its last step
        self.is_between = False

    @property
    def can_be_limited(self) -> bool:
        return bool(self.watched.torch.version.cuda)

    def meet(self, module: Any) -> None:
        """Limit the cards of a module that was not seen before: a script may leave another card the current one."""
        device = self.watched.device
        if device is None or device.type != "cuda" or module in self.met:
            return  # a module that ran on the CPU first is met once it has been moved
        if found := cards_of(module):
            self.met.add(module)
        for number in found - self.numbers:
            self.numbers.add(number)
            if self.can_be_limited:
                self.limit_memory(number)

    def limit_memory(self, device: Any = None) -> None:
        """Limit a card to what the run gives it; one that shares the host's memory, to what the host can spare."""
        settings, cuda = self.watched.settings, self.watched.torch.cuda
        number = cuda.current_device() if device is None else device
        card = cuda.get_device_properties(number)
        emulated, total_bytes = settings.get("emulated") or {}, card.total_memory
        free_bytes = (settings["limit_bytes"] or total_bytes) - emulated.get("communication_bytes", 0)
        if getattr(card, "is_integrated", False):
            free_bytes = min(free_bytes, settings["room_for_gpu_bytes"])
        elif free_bytes == total_bytes:
            return
        cuda.set_per_process_memory_fraction(max(min(free_bytes / total_bytes, 1.0), 0.0), number)

    def end_step(self, optimizer: int) -> tuple[int, int, int]:
        """Count anew after a step.

        Return the most that any card held since the optimizer's step before, since any step, and what all hold now.
        """
        own, allocated, held = self._set_back()
        self.since = {each: max(peak, own) for each, peak in ({optimizer: 0} | self.since).items()}
        most, self.since[optimizer], self.is_between = self.since[optimizer], 0, True
        return most, allocated, held

    def begin_step(self) -> None:
        """Leave out of the next step what ran since the last one, as an evaluation."""
        if self.is_between:
            self._set_back()
            self.is_between = False

    def _set_back(self) -> tuple[int, int, int]:
        """Let torch count anew.

        Return the most that any card held until now, without and with the allocator's rounding, and what all hold.
        """
        own, allocated, held, cuda = 0, 0, 0, self.watched.torch.cuda
        for number in self.numbers:
            counts = cuda.memory_stats(number)
            allocated, held = max(allocated, counts[COUNTED[0]]), held + counts[HELD]
            own = max(own, counts.get(WITHOUT_ROUNDING) or counts[COUNTED[0]])
            most = self.most.setdefault(number, {})
            most.update({name: max(counts[name], most.get(name, 0)) for name in COUNTED})
            cuda.reset_peak_memory_stats(number)
        return own, allocated, held

    def count(self, number: int) -> dict[str, int]:
        """Return the counters of a card, its peaks since the process began."""
        counts = self.watched.torch.cuda.memory_stats(number)
        most = self.most.get(number, {})
        return {**counts, **{name: max(counts.get(name, 0), most.get(name, 0)) for name in COUNTED}}

    def memory(self) -> dict[str, Any]:
        """Return what the fullest card's allocator counted since the process began, and its facts; {} without a card.

        The fullest one decides; the card is one known to train, else the current one.
        """
        torch, device = self.watched.torch, self.watched.device
        if torch is None or not torch.cuda.is_initialized():
            return {}
        trains = device is not None and device.type == "cuda" and device.index is not None
        number = device.index if trains else torch.cuda.current_device()
        number = max((number, *self.numbers), key=self._fullness)
        torch.cuda.synchronize(number)
        counts, (free_bytes, total_bytes) = self.count(number), torch.cuda.mem_get_info(number)
        return {
            **read.card_facts(torch, number),
            "total_bytes": total_bytes,
            "free_bytes": free_bytes,
            "peak_allocated_bytes": counts.get("allocated_bytes.all.peak", 0),
            "peak_reserved_bytes": counts.get("reserved_bytes.all.peak", 0),
            "reserved_bytes": counts.get("reserved_bytes.all.current", 0),
            "refused_allocations": counts.get("num_ooms", 0),
            "allocator_retries": counts.get("num_alloc_retries", 0),
        }

    def _fullness(self, number: int) -> float:
        total = self.watched.torch.cuda.get_device_properties(number).total_memory
        return float(self.count(number).get("reserved_bytes.all.peak", 0) / total)


def cards_of(module: Any) -> set[int]:
    devices = {each.device for each in module.parameters()}
    replicas = {each for each in getattr(module, "device_ids", None) or () if isinstance(each, int)}
    return replicas | {each.index for each in devices if each.type == "cuda" and each.index is not None}
