"""PURE: what fills the memory when an allocation is refused, or at the peak, by module, kind and phase.

The bytes of the entries add up to `total_bytes` exactly: an entry of kind "unattributed" has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..text.from_json import from_json
from ..text.units import format_bytes

PARAMETERS, GRADIENTS, STATE = "parameters", "gradients", "optimizer_state"
ACTIVATIONS, TEMPORARIES, INPUTS = "activations", "temporaries", "inputs"
WORKSPACES, UNATTRIBUTED = "workspaces", "unattributed"
COMMUNICATION = "communication"
CONTENT_LABELS: dict[str, str] = {
    PARAMETERS: "weights",
    GRADIENTS: "gradients",
    STATE: "optimizer state",
    ACTIVATIONS: "activations",
    TEMPORARIES: "temporary",
    INPUTS: "inputs",
    COMMUNICATION: "gathered weights and communication buffers",
    WORKSPACES: "libraries",
    UNATTRIBUTED: "not attributed",
}
"""Every kind of memory, with its name. Activations are what is stored for the backward pass, and what the model
returned. Temporary is everything else that a step allocates, above all the gradients of activations."""

BATCH, LOSS, OPTIMIZER = "batch", "loss", "optimizer"
"""Names in place of a module: creation of the batch, loss outside of the model, optimizer."""

MOST_ENTRIES = 120
"""Beyond this number the smallest entries are joined, one per kind. A model without equal layers may have thousands."""
SMALLER = "smaller entries"
ALONE_SHARE = 2 / 3
"""A layer that holds more than this share of what the layers like it hold is not joined with them."""

Moment = Literal["refusal", "peak"]
Method = Literal["measured", "estimated"]


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """One live allocation. `module` is its path in the model; None where that is unknown, as for `phase`."""

    size_bytes: int
    kind: str
    module: str | None = None
    phase: str | None = None
    operator: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The allocation that was refused, or that reached the peak.

    `size_bytes` is None where it is unknown, and 0 where the limit was reached before anything was requested. `kind` is
    None where a device refused: the tensor was never created, and the size is that of the segment that the allocator
    requested from the driver.
    """

    size_bytes: int | None
    module: str | None
    phase: str | None
    operator: str | None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:  # the API publishes this name: a component of its schema
    """Live bytes of one kind, module and phase.

    Modules that differ only in their layer's number are one entry: `module` has a * for it, and `modules` counts them.
    `operator` is the one that allocated the largest block.
    """

    kind: str
    module: str | None
    phase: str | None
    size_bytes: int
    blocks: int
    modules: int = 1
    operator: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryBreakdown:
    """What filled the memory of one batch size at one moment.

    `total_bytes` is live at the moment: without the refused request at a refusal, with the last request at a peak.
    `cached_bytes` is reserved but free, and too fragmented for the request; None on devices without such a cache.
    `step` counts from 1, and is 0 before the first. `seconds` is what the breakdown took; None for an estimate, where
    it takes no extra time.
    """

    batch_size: int
    moment: Moment
    method: Method
    total_bytes: int
    limit_bytes: int | None
    request: Request
    entries: tuple[Entry, ...]
    cached_bytes: int | None = None
    step: int = 0
    seconds: float | None = None

    def taking(self, seconds: float) -> MemoryBreakdown:
        return replace(self, seconds=round(seconds, 3))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MemoryBreakdown:
        """Read a breakdown. Raises ValueError, also for a kind that has no name."""
        return from_json(cls, data).of_known_kinds()

    def of_known_kinds(self) -> MemoryBreakdown:
        """Return this breakdown. Raises ValueError for a kind that has no name."""
        if unknown := {entry.kind for entry in self.entries} - CONTENT_LABELS.keys():
            raise ValueError(f"unknown kind {min(unknown)!r}")
        return self


def entries_of(blocks: Iterable[LiveBlock], total_bytes: int) -> tuple[Entry, ...]:
    """Join blocks of one kind, layer and phase; the rest is unattributed. Raises ValueError for more than the total."""
    entries = _joined(_of_modules(blocks))
    missing = total_bytes - sum(entry.size_bytes for entry in entries)
    if missing < 0:
        raise ValueError(f"the blocks hold {-missing} bytes more than the {total_bytes} that were live")
    if missing:
        entries.append(Entry(UNATTRIBUTED, None, None, missing, blocks=0))
    return _shortened(sorted(entries, key=lambda entry: (-entry.size_bytes, entry.kind, entry.module or "")))


def _of_modules(blocks: Iterable[LiveBlock]) -> list[Entry]:
    groups: dict[tuple[str, str | None, str | None], list[LiveBlock]] = {}
    for block in blocks:
        if block.size_bytes:
            groups.setdefault((block.kind, block.module, block.phase), []).append(block)
    entries = []
    for (kind, module, phase), group in groups.items():
        largest = max(group, key=lambda block: block.size_bytes)
        size_bytes = sum(block.size_bytes for block in group)
        entries.append(Entry(kind, module, phase, size_bytes, len(group), operator=largest.operator))
    return entries


def _joined(entries: Iterable[Entry]) -> list[Entry]:
    groups: dict[tuple[str, str | None, str | None], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.kind, layer_pattern(entry.module), entry.phase), []).append(entry)
    joined = []
    for (_, pattern, _), group in groups.items():
        group.sort(key=lambda entry: -entry.size_bytes)
        if group[0].size_bytes > ALONE_SHARE * sum(entry.size_bytes for entry in group):
            joined.append(group.pop(0))
        if len(group) > 1:
            size_bytes, blocks = sum(e.size_bytes for e in group), sum(e.blocks for e in group)
            group = [replace(group[0], module=pattern, size_bytes=size_bytes, blocks=blocks, modules=len(group))]
        joined += group
    return joined


def _shortened(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    kept, rest = list(entries[:MOST_ENTRIES]), entries[MOST_ENTRIES:]
    for kind in CONTENT_LABELS:
        joined = [entry for entry in rest if entry.kind == kind]
        if joined:
            size_bytes, blocks = sum(e.size_bytes for e in joined), sum(e.blocks for e in joined)
            modules = sum(e.modules for e in joined)
            kept.append(Entry(kind, SMALLER, None, size_bytes, blocks, modules))
    return tuple(kept)


def layer_pattern(module: str | None) -> str | None:
    """Write "h.3.mlp" as "h.*.mlp", but "stages.0.layers.2" as "stages.0.layers.*": only layers are alike."""
    if module is None:
        return None
    parts = module.split(".")
    numbered = [place for place, part in enumerate(parts) if _NUMBER.search(part)]
    for place in numbered[1:] or numbered:
        parts[place] = _NUMBER.sub("*", parts[place])
    return ".".join(parts)


_NUMBER = re.compile(r"(?:(?<=_)|^)\d+$")


def by_kind(breakdown: MemoryBreakdown) -> dict[str, int]:
    """Return the bytes of each kind that holds any, in the order of `CONTENT_LABELS`."""
    totals = {kind: sum(e.size_bytes for e in breakdown.entries if e.kind == kind) for kind in CONTENT_LABELS}
    return {kind: size for kind, size in totals.items() if size}


def describe(breakdown: MemoryBreakdown) -> str:
    kinds = sorted(by_kind(breakdown).items(), key=lambda item: -item[1])
    parts = [f"{CONTENT_LABELS[kind]} {_share(size, breakdown)}" for kind, size in kinds[:3]]
    return f"{describe_moment(breakdown)} Most of it, by kind: {', '.join(parts)}."


def describe_moment(breakdown: MemoryBreakdown) -> str:
    """Write "Batch 33 ran out of memory: 12.0 MiB at lm_head in backward, with 3.9 GiB of 4.0 GiB live."."""
    request, live = breakdown.request, format_bytes(breakdown.total_bytes)
    size, where = f"{breakdown.batch_size:,}", _place(request)
    if breakdown.moment == "peak":
        return f"The peak of batch {size} is {live}{where}."
    limit = "" if breakdown.limit_bytes is None else format_bytes(breakdown.limit_bytes)
    if request.size_bytes == 0:
        return f"Batch {size} cannot begin: {live} are live before its first step, and the limit is {limit}."
    requested = "a request" if request.size_bytes is None else format_bytes(request.size_bytes)
    ran = "would run" if breakdown.method == "estimated" else "ran"
    return f"Batch {size} {ran} out of memory: {requested}{where}, with {live}{f' of {limit}' if limit else ''} live."


def _place(request: Request) -> str:
    """Write " at lm_head in backward (mm)"; empty where nothing is known."""
    at = f" at {request.module}" if request.module else ""
    phase = f" in {request.phase.replace('_', ' ')}" if request.phase else ""
    operator = f" ({request.operator})" if request.operator else ""
    return f"{at}{phase}{operator}"


def describe_entry(entry: Entry, breakdown: MemoryBreakdown) -> str:
    """Write "41 %  1.6 GiB  activations at h.*.mlp (12 modules), from forward"."""
    where = f" at {entry.module}" if entry.module else ""
    modules = f" ({entry.modules} modules)" if entry.modules > 1 else ""
    phase = f", from {entry.phase.replace('_', ' ')}" if entry.phase else ""
    size = format_bytes(entry.size_bytes)
    return f"{_share(entry.size_bytes, breakdown)}  {size}  {CONTENT_LABELS[entry.kind]}{where}{modules}{phase}"


def _share(size_bytes: int, breakdown: MemoryBreakdown) -> str:
    return f"{size_bytes / breakdown.total_bytes * 100:.0f} %" if breakdown.total_bytes else "0 %"
