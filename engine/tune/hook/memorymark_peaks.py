"""Reads the own peak of each optimizer step of a card, and keeps that of the whole: torch counts one peak at a time."""

from __future__ import annotations

from typing import Any

COUNTED = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
WITHOUT_ROUNDING = "requested_bytes.all.peak"


class Peaks:
    """`most` has by card what torch counted at most before its counters were set back."""

    def __init__(self) -> None:
        self.most: dict[int, dict[str, int]] = {}
        self.since: dict[int, int] = {}  # by optimizer the most since its last step
        self.is_between = False

    def count(self, torch: Any, number: int) -> dict[str, int]:
        """Return the counters of a card, its peaks since the process began."""
        counts = torch.cuda.memory_stats(number)
        most = self.most.get(number, {})
        return {**counts, **{name: max(counts.get(name, 0), most.get(name, 0)) for name in COUNTED}}

    def end_step(self, torch: Any, cards: set[int], optimizer: int) -> tuple[int, int]:
        """Return the most that any card held since the optimizer's step before, and since any step, and count anew."""
        own, allocated = self.set_back(torch, cards)
        self.since = {each: max(peak, own) for each, peak in ({optimizer: 0} | self.since).items()}
        most, self.since[optimizer], self.is_between = self.since[optimizer], 0, True
        return most, allocated

    def begin_step(self, torch: Any, cards: set[int]) -> None:
        """Leave out of the next step what ran since the last one, as an evaluation."""
        if self.is_between:
            self.set_back(torch, cards)
            self.is_between = False

    def set_back(self, torch: Any, cards: set[int]) -> tuple[int, int]:
        """Let torch count anew; the most that any card held until now, without and with the allocator's rounding."""
        own = allocated = 0
        for number in cards:
            counts = torch.cuda.memory_stats(number)
            allocated = max(allocated, counts[COUNTED[0]])
            own = max(own, counts.get(WITHOUT_ROUNDING) or counts[COUNTED[0]])
            most = self.most.setdefault(number, {})
            most.update({name: max(counts[name], most.get(name, 0)) for name in COUNTED})
            torch.cuda.reset_peak_memory_stats(number)
        return own, allocated
