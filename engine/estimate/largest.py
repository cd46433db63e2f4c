"""The largest length, LoRA rank or model of a family with which a batch still trains on a card, by few estimates.

PURE. Each value has its own trace, so few are tried: lengths and ranks of a few binary digits, as people use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from ..errors import SpecError
from ..settings.catalog import WORKLOADS
from ..settings.spec import RANGES, RunSpec
from ..text.time_left import describe_left
from ..text.units import format_bytes, format_percent
from .types import Judged, safe_bytes

MOST_TRIED = 10
"""The most values that are tried, the requested one included: each costs a trace."""
_USUALLY_TRIED = 4
GUESSED = 3
"""After so many tries, every second one is the middle of what is left."""
_RANKS_OF_ALL_ELSE = 500
"""What a training with adapters holds besides them, in ranks: of all linear layers of decoders, 400 to 600."""
_LENGTH_DIGITS, _RANK_DIGITS = 5, 3
"""Binary digits of the lengths and ranks that are tried: of lengths every 3 to 6 %, of ranks every 14 to 25 %."""


class LargestOf(StrEnum):
    """The setting whose largest value is searched; `model` searches among those of the requested one's family."""

    SEQUENCE_LENGTH = "sequence_length"
    IMAGE_SIZE = "image_size"
    LORA_RANK = "lora_rank"
    MODEL = "model"


Value = int | str
MemoryOf = Callable[[RunSpec], int]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One value of the setting: the training with it, its name, and the number by which memory grows."""

    value: Value
    label: str
    extent: int
    spec: RunSpec


@dataclass(frozen=True, slots=True)
class TriedValue(Judged):
    value: Value
    label: str
    memory_bytes: int
    fits: bool
    is_safe: bool


@dataclass(frozen=True, slots=True)
class Largest:
    """The answer. `value` is the largest that fits with the margin, `too_large` the smallest found not to, if any.

    `is_exact`: no value between these two could have been tried. `tried` is in the order of the values.
    """

    setting: LargestOf
    batch_size: int
    limit_bytes: int
    margin_fraction: float
    value: Value | None
    too_large: Value | None
    is_exact: bool
    tried: tuple[TriedValue, ...]
    values_count: int
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """Write "At batch 1, 4,096 tokens fit with the margin of 21.9 %; 4,352 would not."."""
        by_value = {each.value: each for each in self.tried}
        margin, batch = f"with the margin of {format_percent(self.margin_fraction)}", f"batch {self.batch_size:,}"
        if self.value is None:
            least = self.tried[0]
            needs = f"{format_bytes(least.memory_bytes)} of {format_bytes(self.limit_bytes)}"
            return f"At {batch}, not even {least.label} {_fit(self.setting)} {margin}: estimated {needs}."
        said = f"At {batch}, {by_value[self.value].label} {_fit(self.setting)} {margin}"
        if self.too_large is None:
            return f"{said}: {_LAST[self.setting]}."
        other = by_value[self.too_large].label if self.setting is LargestOf.MODEL else f"{self.too_large:,}"
        between = "" if self.is_exact else " Values between these were not tried."
        return f"{said}; {other} would not.{between}"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "text": self.text}


_LAST = {
    LargestOf.SEQUENCE_LENGTH: "the model's own limit, not the memory's",
    LargestOf.IMAGE_SIZE: "the model's own limit, not the memory's",
    LargestOf.LORA_RANK: "the largest that is offered, not the memory's limit",
    LargestOf.MODEL: "the largest of its family here, not the memory's limit",
}
"""What ends the search where the last value fits."""
LABELS = {
    LargestOf.SEQUENCE_LENGTH: "Longest sequence",
    LargestOf.IMAGE_SIZE: "Largest images",
    LargestOf.LORA_RANK: "Largest LoRA rank",
    LargestOf.MODEL: "Largest model of its family",
}


def _progress(number: int, candidates_count: int, label: str, seconds: float) -> str:
    """Write "value 2 of about 4: 3,456 tokens, about 20 s left"; the requested value is none of them."""
    count = max(number, min(_USUALLY_TRIED, candidates_count - 1))
    left = f", {describe_left(seconds / (number - 1) * (count - number + 1))}" if number > 1 else ""
    return f"value {number} of about {count}: {label}{left}"


def _fit(setting: LargestOf) -> str:
    return "fits" if setting in (LargestOf.LORA_RANK, LargestOf.MODEL) else "fit"


def candidates_of(spec: RunSpec, setting: LargestOf) -> list[Candidate]:
    """Return the values to search among, the smallest first. Raises SpecError for what the training does not have."""
    if setting is LargestOf.MODEL:
        return _relatives(spec)
    if setting is LargestOf.LORA_RANK:
        if spec.lora_rank is None:
            raise SpecError("largest", "lora_rank is of a training with LoRA: give the lora_rank to start from, as 16")
        ranks = _round_numbers((1, int(RANGES["lora_rank"][1])), _RANK_DIGITS)
        return [
            Candidate(rank, f"LoRA rank {rank:,}", rank + _RANKS_OF_ALL_ELSE, replace(spec, lora_rank=rank))
            for rank in sorted({*ranks, spec.lora_rank})
        ]
    workload = spec.workload
    if workload.input_field != setting:
        raise SpecError("largest", f"{workload.id} has no {setting}; it takes {workload.input_field}")
    sizes = _round_numbers(workload.input_sizes, _LENGTH_DIGITS, workload.input_multiple_of)
    label, power = ("{:,} tokens", 1) if workload.is_text else ("images of {0:,} x {0:,} pixels", 2)
    return [
        Candidate(size, label.format(size), size**power, spec.with_input_size(size))
        for size in sorted({*sizes, spec.input_size})
    ]


def _relatives(spec: RunSpec) -> list[Candidate]:
    if spec.config is not None:
        raise SpecError("largest", "a config of your own has no family; search among models of the catalogue")
    own, found = spec.workload, []
    for other in WORKLOADS.values():
        if (other.family, other.task) != (own.family, own.task):
            continue
        try:
            made = replace(spec, model=other.id).with_input_size(spec.input_size)
        except SpecError as error:
            if error.field != "memory_limit_bytes":
                continue  # this model does not take the settings or the inputs
            # a model whose weights are above the limit is estimated all the same, and does not fit
            made = replace(spec, model=other.id, memory_limit_bytes=None).with_input_size(spec.input_size)
        found.append(Candidate(other.id, other.name, other.parameter_count, made))
    if len(found) < 2:
        raise SpecError("largest", f"the catalogue has no other model of the family of {own.id} that trains like this")
    return sorted(found, key=lambda each: each.extent)


def _round_numbers(bounds: tuple[int, int], digits: int, multiple_of: int = 1) -> set[int]:
    """Return round numbers in the range (at most `digits` significant bits), and both ends."""
    least, most = bounds
    first, last = -(-least // multiple_of), most // multiple_of
    numbers = (head << zeros for zeros in range(last.bit_length()) for head in range(1, 1 << digits))
    return {number * multiple_of for number in (*numbers, first, last) if first <= number <= last}


@dataclass
class _Search:
    """The candidates, what was tried of them by its place, and the room that a safe value must keep to."""

    candidates: Sequence[Candidate]
    room_bytes: int
    memory_bytes: dict[int, int] = field(default_factory=dict)

    @property
    def low(self) -> int:
        """The place of the largest value that is safe; -1 for none."""
        return max((place for place, held in self.memory_bytes.items() if held <= self.room_bytes), default=-1)

    @property
    def high(self) -> int:
        """The place of the smallest value above `low` that is not safe; the end for none."""
        return min((place for place in self.memory_bytes if place > self.low), default=len(self.candidates))

    def next_place(self) -> int | None:
        """Return the place to try next; None when both neighbours of the limit are known, or enough was tried."""
        low, high = self.low, self.high
        if high - low <= 1 or len(self.memory_bytes) >= MOST_TRIED:
            return None
        is_bisected = len(self.memory_bytes) > GUESSED and len(self.memory_bytes) % 2 == 0
        guess = (low + high) // 2 if is_bisected else self._guess()
        return min(max(guess, low + 1), high - 1)

    def _guess(self) -> int:
        """Return the last place that should be safe by the line through the nearest two tried values that are not.

        Where fewer were too large, it goes through the largest two that were tried, or through zero and the only one.
        """
        known = [(self.candidates[place].extent, found) for place, found in sorted(self.memory_bytes.items())]
        first = min(sum(found <= self.room_bytes for _, found in known), len(known) - 2)
        (x0, y0), (x1, y1) = known[first : first + 2] if len(known) > 1 else [(0, 0), *known]
        slope = (y1 - y0) / (x1 - x0)
        extents = [each.extent for each in self.candidates[self.low + 1 : self.high]]
        return self.low + sum(y0 + slope * (extent - x0) <= self.room_bytes for extent in extents)


def largest_of(
    spec: RunSpec,
    setting: LargestOf,
    batch_size: int,
    memory_of: MemoryOf,
    *,
    limit_bytes: int,
    margin_fraction: float,
    report: Report = lambda _: None,
) -> Largest:
    started, candidates = time.monotonic(), candidates_of(spec, setting)
    search = _Search(candidates, safe_bytes(limit_bytes, margin_fraction))
    requested = spec.model if setting is LargestOf.MODEL else getattr(spec, setting) or spec.input_size
    place: int | None = [each.value for each in candidates].index(requested)
    while place is not None:
        if number := len(search.memory_bytes):  # the requested value was estimated before
            report(_progress(number, len(candidates), candidates[place].label, time.monotonic() - started))
        search.memory_bytes[place] = memory_of(candidates[place].spec)
        place = search.next_place()
    low, high = search.low, search.high
    return Largest(
        setting=setting,
        batch_size=batch_size,
        limit_bytes=limit_bytes,
        margin_fraction=margin_fraction,
        value=candidates[low].value if low >= 0 else None,
        too_large=candidates[high].value if high < len(candidates) else None,
        is_exact=high - low == 1,
        tried=tuple(
            TriedValue(each.value, each.label, found, fits=found <= limit_bytes, is_safe=found <= search.room_bytes)
            for each, found in ((candidates[place], found) for place, found in sorted(search.memory_bytes.items()))
        ),
        values_count=len(candidates),
        seconds=round(time.monotonic() - started, 1),
    )
