"""The texts of an estimate: pure functions of a stored estimate to sentences, bars and table rows.

Every sentence is in the conditional, because nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.presentation.charts.bars import MemoryBar, Stack, stack_of
from analysis.presentation.formatting import bytes_text, duration, percent, usd
from analysis.presentation.labels import describe_limit, model_name, short_device_name
from analysis.presentation.stored_estimate import KINDS, EstimatedPoint, StoredEstimate

if TYPE_CHECKING:
    from analysis.runs.gpu_catalog import Price

_LIMITS = {
    "memory": "",  # the usual limit: no text
    "max_batch_size": "largest requested size",
    "does_not_fit": "does not fit",
}
_METHODS = {
    "fake_cuda": "Three training steps traced on tensors without data, with the card's own kernels, replayed in a "
    "model of PyTorch's allocator",
    "fake_cpu": "Three training steps traced on tensors without data, with the CPU's own kernels",
    "approximate_fake_cpu": "Approximate: traced with the CPU's kernels; a GPU's own may take several percent more or "
    "less",
}
_SPOKEN_WITH_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel: an A100, an H100, an RTX 4090


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One card in the table of all cards."""

    gpu_id: str
    name: str
    total_bytes: int
    largest: int | None
    safe: int | None
    largest_percent: str
    memory_at_current: int | None
    memory_percent: str
    fits_current: bool | None
    price: Price | None
    limit: str
    is_calibrated: bool
    takes_current: bool
    """Whether today's batch size is within the margin of error."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind of memory, at each size that was estimated."""

    css_class: str
    name: str
    sizes: tuple[int | None, ...]


def headline(estimate: StoredEstimate, spec: Mapping[str, Any]) -> str:
    """Write "An A100 40GB would train BERT base with up to about 508; 480 is safe within the margin."."""
    card, name = with_article(short_device_name(estimate.gpu_name)), model_name(spec["model"])
    card += f" {describe_limit(estimate.memory_limit_bytes)}" if estimate.memory_limit_bytes else ""
    verb = "run forward and backward" if spec["optimizer"] == "none" else "train"
    if not estimate.fits_at_all:
        return f"{card} would not {verb} {name}: not even one sample would fit."
    largest = estimate.largest_batch_size or 0
    reach = f"at least {largest:,}" if estimate.limits == "max_batch_size" else f"up to about {largest:,}"
    safe = estimate.safe_batch_size
    if estimate.limits == "max_batch_size" and safe == largest:
        return f"{card} would {verb} {name} with {reach}."
    keep = f"{safe:,} is safe within the margin" if safe else "no size is safe within the margin"
    return f"{card} would {verb} {name} with {reach}; {keep}."


def headline_of_all(estimates: Sequence[StoredEstimate], spec: Mapping[str, Any], left_out: int = 0) -> str:
    """Say how many cards would take today's batch size; `left_out` are those that cannot run the settings at all."""
    count = len(estimates) + left_out
    size, name = int(spec["current_batch_size"]), model_name(spec["model"])
    limit = describe_limit(spec.get("memory_limit_bytes"))
    cards = f"{count} cards{f', each {limit},' if limit else ''}"
    safe = [estimate for estimate in estimates if (estimate.safe_batch_size or 0) >= size]
    if not safe:
        return f"None of {cards} would safely train {name} with your batch of {size:,}."
    smallest = short_device_name(min(safe, key=lambda estimate: estimate.total_bytes).gpu_name)
    share = "All" if len(safe) == count else f"{len(safe)} of"
    return f"{share} {cards} would train {name} with your batch of {size:,}; the smallest is {smallest}."


def with_article(name: str) -> str:
    """Write "An A100", "A T4", "A Tesla T4": a word in capitals is read letter by letter."""
    first = name.split(maxsplit=1)[0] if name.strip() else ""
    is_spelt = not any(character.islower() for character in first)
    has_vowel = first[:1].upper() in (_SPOKEN_WITH_VOWEL if is_spelt else "AEIOU")
    return f"{'An' if has_vowel else 'A'} {name}"


def estimate_bars(estimate: StoredEstimate, current_batch_size: int) -> list[MemoryBar]:
    """Return the bars of today's size and the safe one."""
    wanted = {"today": ("Today", current_batch_size), "recommended": ("Safe", estimate.safe_batch_size)}
    return [
        _bar(key, title, size, estimate)
        for key, (title, size) in wanted.items()
        if size and not (key == "recommended" and size == current_batch_size)
    ]


def _bar(key: str, title: str, size: int, estimate: StoredEstimate) -> MemoryBar:
    point = estimate.at(size)
    is_refused = point is not None and not point.fits
    used = estimate.memory_bytes(point) if point and point.fits else None
    unknown = "would not fit" if is_refused else "not estimated"
    return MemoryBar(key, title, size, used, estimate.capacity_bytes, is_refused, unknown)


def estimate_stack(estimate: StoredEstimate, current_batch_size: int) -> Stack | None:
    """Return the memory by kind at the peak: of the safe size, else of today's."""
    point = estimate.at(estimate.safe_batch_size) or estimate.at(current_batch_size)
    if point is None or not point.by_kind:
        return None
    kinds = [(key, label, point.by_kind.get(key, 0)) for key, label in KINDS]
    return stack_of(point.batch_size, kinds, peak_phase=point.phase)


def kind_rows(points: Sequence[EstimatedPoint]) -> list[KindRow]:
    """Return the table of memory by kind; kinds without any memory are left out."""
    rows = [KindRow(f"kind-{key}", label, tuple(point.by_kind.get(key) for point in points)) for key, label in KINDS]
    return [row for row in rows if any(row.sizes)]


def gpu_rows(estimates: Sequence[StoredEstimate], current_batch_size: int, prices: Mapping[str, Price]) -> list[GpuRow]:
    """Return the cards, those with the largest batch size first, then by memory."""
    most = max((estimate.largest_batch_size or 0 for estimate in estimates), default=0)
    ordered = sorted(estimates, key=lambda e: (-(e.largest_batch_size or 0), -e.total_bytes, e.gpu_name))
    return [_gpu_row(estimate, most, current_batch_size, prices.get(estimate.gpu_id)) for estimate in ordered]


def _gpu_row(estimate: StoredEstimate, most: int, current_batch_size: int, price: Price | None) -> GpuRow:
    point = estimate.at(current_batch_size)
    memory = estimate.memory_bytes(point) if point and point.fits else None
    return GpuRow(
        gpu_id=estimate.gpu_id,
        name=short_device_name(estimate.gpu_name),
        total_bytes=estimate.total_bytes,
        largest=estimate.largest_batch_size,
        safe=estimate.safe_batch_size,
        largest_percent=_share(estimate.largest_batch_size, most),
        memory_at_current=memory,
        memory_percent=_share(memory, estimate.capacity_bytes),
        fits_current=None if point is None else point.fits,
        price=price,
        limit=_LIMITS.get(estimate.limits, estimate.limits),
        is_calibrated=estimate.is_calibrated,
        takes_current=(estimate.safe_batch_size or 0) >= current_batch_size,
    )


def how_rows(estimate: StoredEstimate, price: Price | None = None) -> list[tuple[str, str]]:
    """Return the method of the estimate and its error."""
    rows = [
        ("Method", _METHODS.get(estimate.method, estimate.method)),
        ("Approximate because", estimate.approximate_because),
        ("Memory of the card", bytes_text(estimate.total_bytes)),
        ("Context", _describe_context(estimate)),
        ("Known error", describe_error(estimate.known_error)),
        ("Safety margin", _describe_margin(estimate.margin_fraction)),
        ("Price", describe_price(price)),
        ("Peak", _describe_peak(estimate)),
        ("Took", "" if estimate.seconds is None else duration(estimate.seconds)),
        *estimate.versions.items(),
    ]
    return [(name.replace("_", " "), str(value)) for name, value in rows if value]


def describe_price(price: Price | None) -> str:
    """Write "$1.29 an hour (lab price, 2026-11-01: offer of the data centre)"."""
    if price is None:
        return "not known"
    whose = "lab's price" if price.is_of_lab else "catalogue's price"
    source = ": ".join(part for part in (price.date, price.source) if part)
    return f"{usd(price.per_hour_usd)} an hour ({whose}{f', {source}' if source else ''})"


def describe_error(known_error: Mapping[str, Any]) -> str:
    """Write "typically 1.3 %, at worst 7.9 % (10 public runs)"; without figures "not known ..."."""
    typical, worst = known_error.get("typical_fraction"), known_error.get("worst_fraction")
    parts = [
        "" if typical is None else f"typically {percent(typical)}",
        "" if worst is None else f"at worst {percent(worst)}",
    ]
    text = ", ".join(part for part in parts if part)
    source = known_error.get("source")
    if not text:
        return "not known for this model: measure it"
    return f"{text} ({source})" if source else text


def _describe_peak(estimate: StoredEstimate) -> str:
    point = estimate.at(estimate.safe_batch_size)
    return f"at batch {point.batch_size:,} in {point.where}" if point and point.where else ""


def _describe_margin(margin_fraction: float | None) -> str:
    if margin_fraction is None:
        return ""
    return f"{percent(margin_fraction)}: the safe size still fits if it needs this much more memory"


def _describe_context(estimate: StoredEstimate) -> str:
    if not estimate.context_bytes:  # a CPU has none
        return ""
    kind = "measured on such a card here" if estimate.is_calibrated else "nominal: no such card was calibrated here"
    return f"{bytes_text(estimate.context_bytes)}, {kind}"


def _share(part: int | None, whole: int) -> str:
    return f"{min(1.0, (part or 0) / whole) * 100:.2f}%" if whole else "0%"
