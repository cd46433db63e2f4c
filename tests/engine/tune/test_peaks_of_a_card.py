"""A card's peaks are read step by step, and that of the whole stays known."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import engine

sys.path.append(str(Path(engine.__file__).parent / "tune" / "hook"))  # as in a process that is watched
from memorymark_peaks import Peaks


class Card:
    """The counters of a card's allocator, which rounds each allocation up to 512 bytes."""

    def __init__(self) -> None:
        self.held = self.peak = 0

    def allocate(self, size: int) -> None:
        self.held += size
        self.peak = max(self.peak, self.held)

    def memory_stats(self, _: int) -> dict[str, int]:
        rounded = -(-self.peak // 512) * 512
        return {
            "requested_bytes.all.peak": self.peak,
            "allocated_bytes.all.peak": rounded,
            "reserved_bytes.all.peak": 2 * rounded,
        }

    def reset_peak_memory_stats(self, _: int) -> None:
        self.peak = self.held


def test_each_step_has_its_own_peak_without_what_ran_between_and_the_whole_has_the_most() -> None:
    card, peaks = Card(), Peaks()
    torch: Any = SimpleNamespace(cuda=card)
    found = []
    for taken in (1_000, 3_000, 700):
        peaks.begin_step(torch, {0})
        card.allocate(taken)
        card.allocate(-taken)
        found.append(peaks.end_step(torch, {0}, 7))
        card.allocate(9_000)  # an evaluation
        card.allocate(-9_000)
    assert found == [(1_000, 1_024), (3_000, 3_072), (700, 1_024)]
    assert peaks.count(torch, 0)["allocated_bytes.all.peak"] == 9_216
    assert peaks.count(torch, 0)["reserved_bytes.all.peak"] == 2 * 9_216
