"""What filled the memory, as a result page shows it: a treemap, a table and their sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from analysis.formatting import bytes_text, percent
from engine.facts.memory_breakdown import (
    ACTIVATIONS,
    COMMUNICATION,
    CONTENT_LABELS,
    GRADIENTS,
    INPUTS,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    UNATTRIBUTED,
    WORKSPACES,
    Entry,
    MemoryBreakdown,
    by_kind,
    describe_moment,
)

_CSS = {
    PARAMETERS: "kind-parameters",
    GRADIENTS: "kind-gradients",
    STATE: "kind-optimizer_state",
    ACTIVATIONS: "kind-activations",
    TEMPORARIES: "kind-temporaries",
    INPUTS: "kind-buffers",
    COMMUNICATION: "kind-communication",
    WORKSPACES: "kind-workspaces",
    UNATTRIBUTED: "kind-other",
}
SHOWN = 12
"""Rows of the table that are open at once; the rest is folded."""
WIDE_PERCENT, NARROW_PERCENT = 12.0, 45.0
"""From this width of a tile its text has room: on a wide screen, and on a phone."""
LINE_PERCENT = 14.0
"""From this height one line of text has room, from twice of it two."""
ASPECT = 2.0
"""Width over height of the picture for which the rectangles are made: between a wide screen and a phone."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One rectangle of the treemap: `index` is of the size that it shows; the rest in percent of the picture."""

    index: int
    x: float
    y: float
    width: float
    height: float

    @property
    def room(self) -> str:
        """Return where its text has room: always, wide (hidden on a phone), or empty for nowhere."""
        if self.height < LINE_PERCENT or self.width < WIDE_PERCENT:
            return ""
        return "wide" if self.width < NARROW_PERCENT else "always"

    @property
    def has_second_line(self) -> bool:
        return self.height >= 2 * LINE_PERCENT


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One entry: a line of the table and a tile. `name` is short, for the tile."""

    kind: str
    css_class: str
    name: str
    module: str
    phase: str
    operator: str
    size_bytes: int
    share: str


@dataclass(frozen=True, slots=True)
class FilledMemory:
    title: str
    sentence: str
    moment: str
    is_predicted: bool
    total_bytes: int
    tiles: tuple[tuple[Tile, FilledRow], ...]
    legend: tuple[tuple[str, str, int, str], ...]
    rows: tuple[FilledRow, ...]
    more_rows: tuple[FilledRow, ...]
    fragmentation: str
    cost_seconds: float | None


def filled_memory(breakdown: MemoryBreakdown | None) -> FilledMemory | None:
    """Return what the page shows; None where nothing is known or nothing was live."""
    if breakdown is None or not breakdown.total_bytes:
        return None
    rows = tuple(_row(entry, breakdown) for entry in breakdown.entries)
    held = "filled the memory at" if breakdown.moment == "refusal" else "held the memory at the peak of"
    return FilledMemory(
        title=f"What {held} batch {breakdown.batch_size:,}{f', step {breakdown.step}' if breakdown.step else ''}",
        sentence=_sentence(breakdown),
        moment=describe_moment(breakdown),
        is_predicted=breakdown.method == "estimated",
        total_bytes=breakdown.total_bytes,
        tiles=tuple((tile, rows[tile.index]) for tile in tiles([row.size_bytes for row in rows])),
        legend=tuple(
            (_CSS[kind], CONTENT_LABELS[kind], size, percent(size / breakdown.total_bytes))
            for kind, size in sorted(by_kind(breakdown).items(), key=lambda item: -item[1])
        ),
        rows=rows[:SHOWN],
        more_rows=rows[SHOWN:],
        fragmentation=_fragmentation(breakdown),
        cost_seconds=breakdown.seconds,
    )


def _sentence(breakdown: MemoryBreakdown) -> str:
    """Write the largest entries: "Activations at h.*.mlp (12 modules) 41 %, ..."."""
    parts = []
    for entry in breakdown.entries[:3]:
        at = f" at {entry.module}" if entry.module else ""
        share = percent(entry.size_bytes / breakdown.total_bytes)
        parts.append(f"{share} {CONTENT_LABELS[entry.kind]}{at}{_modules(entry)}")
    return f"{'; '.join(parts)}."


def _modules(entry: Entry) -> str:
    return f" ({entry.modules:,} modules)" if entry.modules > 1 else ""


def _fragmentation(breakdown: MemoryBreakdown) -> str:
    if breakdown.cached_bytes is None:
        return ""
    if not breakdown.cached_bytes:
        return "Fragmentation: none, everything reserved was in use."
    return (
        f"Fragmentation: {bytes_text(breakdown.cached_bytes)} more were reserved, in pieces too small for the request."
    )


def _row(entry: Entry, breakdown: MemoryBreakdown) -> FilledRow:
    module = entry.module or ""
    return FilledRow(
        kind=CONTENT_LABELS[entry.kind],
        css_class=_CSS[entry.kind],
        name=".".join(module.split(".")[-2:]) or CONTENT_LABELS[entry.kind],
        module=f"{module}{_modules(entry)}" if module else "–",
        phase=(entry.phase or "–").replace("_", " "),
        operator=entry.operator or "–",
        size_bytes=entry.size_bytes,
        share=percent(entry.size_bytes / breakdown.total_bytes),
    )


def tiles(sizes: Sequence[float]) -> list[Tile]:
    """Return a rectangle for each size above zero: halves of nearly the same sum, divided across their longer side."""
    return list(
        _divided([(index, size) for index, size in enumerate(sizes) if size > 0], Tile(0, 0.0, 0.0, 100.0, 100.0))
    )


def _divided(sizes: Sequence[tuple[int, float]], whole: Tile) -> Iterator[Tile]:
    if len(sizes) < 2:
        yield from (replace(whole, index=index) for index, _ in sizes)
        return
    sums = list(accumulate(size for _, size in sizes))
    half = min(range(1, len(sizes)), key=lambda count: abs(sums[count - 1] - sums[-1] / 2))
    share = sums[half - 1] / sums[-1]
    if whole.width * ASPECT >= whole.height:
        first = replace(whole, width=whole.width * share)
        second = replace(whole, x=whole.x + first.width, width=whole.width - first.width)
    else:
        first = replace(whole, height=whole.height * share)
        second = replace(whole, y=whole.y + first.height, height=whole.height - first.height)
    yield from _divided(sizes[:half], first)
    yield from _divided(sizes[half:], second)
