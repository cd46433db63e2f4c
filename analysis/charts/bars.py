"""Memory bars, in percent of the device, so that one SVG without a view box fits every width."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.formatting import bytes_text, percent, percent_estimated, round_bytes
from engine.facts.result import Point, Waste

LABEL_FITS_BELOW = 0.7
"""Above this share of the bar the text stands inside the used part: there is no room after it."""
WASTE_FROM = 0.1
"""Share of the memory from which unused memory is shown as waste: less is about the reserve that training needs."""


@dataclass(frozen=True, slots=True)
class MemoryBar:
    """One bar: used and unused memory at a batch size. `used_bytes` None: `unknown` says why.

    `key` is today, recommended, kept where both are the same size, and reserve for the largest that keeps it. Where no
    size is recommended, today's is plain: nothing says that its unused memory is wasted.
    """

    key: str
    title: str
    batch_size: int
    used_bytes: int | None
    capacity_bytes: int
    is_refused: bool = False
    unknown: str = "not measured"
    is_estimated: bool = False

    @property
    def unused_bytes(self) -> int | None:
        return None if self.used_bytes is None else max(0, self.capacity_bytes - self.used_bytes)

    @property
    def is_waste(self) -> bool:
        """Whether it is drawn as an alarm: today's size does not fit, or leaves much unused and can be changed."""
        leaves_much = self.used_bytes is not None and 1 - self.used_fraction >= WASTE_FROM
        return self.key == "today" and (self.is_refused or leaves_much)

    @property
    def css_class(self) -> str:
        if self.key == "recommended":
            return "bar-recommended"
        return "bar-waste" if self.is_waste else "bar-neutral"

    @property
    def used_fraction(self) -> float:
        return min(1.0, (self.used_bytes or 0) / self.capacity_bytes)

    @property
    def used_percent(self) -> str:
        return f"{self.used_fraction * 100:.2f}%"

    @property
    def label(self) -> str:
        if self.used_bytes is None:
            return "✕ does not fit" if self.is_refused else self.unknown
        if not self.has_room_for_label:  # the label stands inside the used part, so it says what that is
            return f"{self._share(self.used_fraction)} used"
        return f"{self._share(1 - self.used_fraction)} unused"

    @property
    def has_room_for_label(self) -> bool:
        return self.used_fraction < LABEL_FITS_BELOW

    @property
    def sentence(self) -> str:
        if self.used_bytes is None:
            verb = "does not fit into" if self.is_refused else f"was {self.unknown} against"
            return f"Batch {self.batch_size:,} {verb} {round_bytes(self.capacity_bytes)}."
        return (
            f"Batch {self.batch_size:,} uses {bytes_text(self.used_bytes)} of {round_bytes(self.capacity_bytes)}; "
            f"{self._share(1 - self.used_fraction)} is unused."
        )

    def _share(self, fraction: float) -> str:
        return percent_estimated(fraction) if self.is_estimated else percent(fraction)


@dataclass(frozen=True, slots=True)
class Slice:
    css_class: str
    name: str
    size_bytes: int
    x_percent: str
    width_percent: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Stack:
    batch_size: int
    phase: str
    slices: tuple[Slice, ...]

    @property
    def total_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.slices)

    @property
    def sentence(self) -> str:
        parts = ", ".join(f"{piece.name} {bytes_text(piece.size_bytes)}" for piece in self.slices)
        return f"Memory at the peak of batch {self.batch_size:,}: {parts}."


def memory_bars(
    *,
    waste: Waste,
    current_batch_size: int,
    current_is_refused: bool,
    recommended: Point | None,
    with_reserve: Point | None = None,
) -> list[MemoryBar]:
    """Return today's bar with the recommended one, or with the reserve's; a single neutral bar for the same size."""
    capacity, at_current = waste.capacity_bytes, waste.at_current_bytes
    used_today = None if at_current is None else capacity - at_current
    key, title, other = "recommended", "Recommended", recommended
    if other is None:
        key, title, other = "reserve", "Largest with reserve", with_reserve
    elif other.batch_size == current_batch_size:
        used = other.memory_bytes if used_today is None else used_today
        return [MemoryBar("kept", "Today and recommended", current_batch_size, used, capacity)]
    today = MemoryBar("today", "Today", current_batch_size, used_today, capacity, current_is_refused)
    if other is None or other.batch_size == current_batch_size:
        return [today]
    return [today, MemoryBar(key, title, other.batch_size, other.memory_bytes, capacity)]


def stack_of(
    batch_size: int, kinds: Iterable[tuple[str, str, int]], *, peak_phase: str | None = None, whole_bytes: int = 0
) -> Stack | None:
    """Stack kinds (CSS class, name, bytes) in their order as shares of their sum, or of `whole_bytes` if that is more.

    Return None where nothing was held.
    """
    sizes = [(f"kind-{css}", name, max(0, size)) for css, name, size in kinds]
    total = sum(size for *_, size in sizes)
    if not total:
        return None
    return Stack(batch_size, (peak_phase or "").replace("_", " "), slices_of(sizes, max(total, whole_bytes)))


def slices_of(parts: Iterable[tuple[str, str, int]], whole_bytes: int) -> tuple[Slice, ...]:
    """Lay parts (CSS class, name, bytes) side by side, each as its share of the whole."""
    slices, start = [], 0.0
    for css_class, name, size in parts:
        share = min(1.0, size / whole_bytes)
        slices.append(Slice(css_class, name, size, f"{start * 100:.3f}%", f"{share * 100:.3f}%", share))
        start += share
    return tuple(slices)
