"""The texts of an estimate, in the conditional, as nothing was measured; a headline has at most 17 words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.charts.bars import MemoryBar, Stack, stack_of
from analysis.formatting import bytes_text, duration, percent_estimated, usd
from analysis.presentation.labels import describe_limit, describe_several, short_device_name
from analysis.runs.gpu_catalog import Price
from engine.describe.estimate import METHODS, describe_attention, describe_emulation, describe_known_error
from engine.describe.key_figures import GAIN, SAVES, UNUSED, USE, WASTE, KeyFigure
from engine.describe.ranks import describe_global, ranks_rows
from engine.describe.result import WORDS_MOST
from engine.estimate.smallest_card import smallest_gpu
from engine.estimate.types import OR_MORE, Reached
from engine.questions.documents.estimated import EstimatedCard
from engine.text.today import name_today
from engine.text.units import format_percent

_NOT_IN_HEADLINES = ("NVIDIA ", "GeForce ", "Tesla ", "AMD ", "Instinct ")
_SPOKEN_WITH_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel: an A100, an H100, an RTX 4090
_NUMBER_WITH_UNIT = re.compile(r"(?<=\d) (?=[KMGT]?i?B\b|%)")


def headline(estimate: EstimatedCard, spec: Mapping[str, Any], batch_size: int | None = None) -> str:
    """Write "Up to 480 fit an A100; your 32 leaves 80 % unused."; `batch_size` replaces the spec's."""
    today = int(spec["current_batch_size"]) if batch_size is None else batch_size
    limit = describe_limit(estimate.spec.memory_limit_bytes)
    gpu = " ".join(filter(None, [_named(estimate.gpu.name, estimate.spec.ranks), limit]))
    largest, safe = estimate.largest_batch_size, estimate.safe_batch_size
    if not largest:
        return f"Does not fit: not even batch 1 on {gpu}."
    if is_too_large(today, estimate):
        advice = f"Up to {safe:,} fit{'' if safe > 1 else 's'}." if safe else f"Only {largest:,} might fit."
        return f"Does not fit: {today:,} on {gpu}. {advice}"
    if not safe:
        return f"Too close: {largest:,} on {gpu} fits only without the margin."
    if today > safe:
        return f"At most {safe:,}: {name_today(today)} leaves no margin on {gpu}."
    if today == safe:
        return f"Keep {name_today(today)}: no more fits {gpu} with the margin."
    reach = size_text(estimate, safe) if estimate.is_capped(safe) else f"Up to {safe:,}"
    unused = describe_unused(estimate, today)
    full = [f"{reach} fit {gpu}; {name_today(today)} {unused}."] if unused else []
    return _first_short([*full, f"{reach} fit {gpu}, against {name_today(today)}.", f"{reach} fit {gpu}."])


def is_too_large(size: int, estimate: EstimatedCard) -> bool:
    largest = estimate.largest_batch_size
    return size > largest and not estimate.is_capped(largest)


def headline_of_all(
    estimates: Sequence[EstimatedCard],
    spec: Mapping[str, Any],
    left_out: int = 0,
    prices: Mapping[str, Price] | None = None,
) -> str:
    """Write "28 of 34 GPUs fit your 32; the cheapest is a T4, $0.35 an hour."; `left_out` cannot run the settings."""
    size, limit, prices = int(spec["current_batch_size"]), describe_limit(spec.get("memory_limit_bytes")), prices or {}
    fitting, count = [each.gpu for each in estimates if each.safe_batch_size >= size], len(estimates) + left_out
    gpus = f"{count} GPUs{f' {limit}' if limit else ''}"
    if not fitting:
        return f"Does not fit: none of {gpus} takes {name_today(size)}."
    share = f"All {gpus}" if len(fitting) == count else f"{len(fitting)} of {gpus}"
    said = f"{share} fit{'s' if len(fitting) == 1 else ''} {name_today(size)}"
    cheapest = cheapest_of({gpu.id: prices[gpu.id] for gpu in fitting if gpu.id in prices})
    if cheapest is None:
        smallest = min(fitting, key=lambda gpu: gpu.total_bytes)
        return _first_short([f"{said}; the smallest is {_named(smallest.name)}.", f"{said}."])
    ranks = int(spec.get("ranks", 1))
    name = _named(next(gpu.name for gpu in fitting if gpu.id == cheapest), ranks, of="")
    price = usd(prices[cheapest].times(ranks).per_hour_usd)
    lowest = "the cheapest is" if all(gpu.id in prices for gpu in fitting) else "lowest known price:"
    return _first_short([f"{said}; {lowest} {name}, {price} an hour.", f"{said}; {lowest} {name}.", f"{said}."])


def cheapest_of(prices: Mapping[str, Price]) -> str | None:
    return min(prices, key=lambda gpu_id: prices[gpu_id].per_hour_usd, default=None)


def describe_unused(estimate: EstimatedCard, batch_size: int) -> str:
    """Write "leaves 80 % unused", "leaves at least 79 % unused" between two estimated sizes; empty: not estimated."""
    memory = estimate.memory_at_most(batch_size)
    if memory is None:
        return ""
    unused = 1 - memory / estimate.capacity_bytes
    if unused < 0.01:
        return "nearly fills it"
    is_exact = estimate.at_batch_size(batch_size) is not None
    return f"leaves {'' if is_exact else 'at least '}{percent_estimated(unused)} unused"


def with_article(name: str) -> str:
    """Write "an A100", "a T4", "a Tesla T4": a word in capitals is read letter by letter."""
    first = name.split(maxsplit=1)[0] if name.strip() else ""
    is_spelt = not any(character.islower() for character in first)
    has_vowel = first[:1].upper() in (_SPOKEN_WITH_VOWEL if is_spelt else "AEIOU")
    return f"{'an' if has_vowel else 'a'} {name}"


def count_words(sentence: str) -> int:
    """Count the words of a headline; a number with its unit, "16 GB" or "80 %", is one."""
    return len(_NUMBER_WITH_UNIT.sub("", sentence).split())


def _first_short(sentences: Sequence[str]) -> str:
    return next((each for each in sentences if count_words(each) <= WORDS_MOST), sentences[-1])


def _named(name: str, ranks: int = 1, of: str = "each of ") -> str:
    """Write a GPU's name with its article, or "each of 8 A100 80 GB", without its maker and what follows a comma."""
    short = name.partition(",")[0]
    for part in _NOT_IN_HEADLINES:
        short = short.removeprefix(part)
    return with_article(short) if ranks == 1 else f"{of}{ranks} {short}"


_PARTS = (
    ("parameters", "parameters"),
    ("buffers", "buffers"),
    ("gradients", "gradients"),
    ("optimizer_state", "optimizer state"),
    ("activations", "activations"),
    ("temporaries", "temporaries"),
    ("workspaces", "library workspaces"),
    ("communication", "gathered weights and communication buffers"),
)
"""Key of `by_kind` without its unit, and the text for it, in the order they are drawn."""
_COUNTERS = (
    ("peak_allocated", "peak allocated"),
    ("peak_reserved", "peak reserved"),
    ("device_used", "device used"),
)
"""Key of a point without its unit, and the text for it."""
WITH_MARGIN = "With margin"
"""What pages call the largest size that would still fit if everything took more than predicted, by the margin."""


@dataclass(frozen=True, slots=True)
class GpuRow:
    estimate: EstimatedCard
    name: str
    largest_text: str
    safe_text: str
    largest_percent: str
    memory_at_current: int | None
    memory_percent: str
    is_refused: bool
    price: Price | None
    takes_current: bool
    """Whether today's batch size is within the margin of error."""
    is_cheapest: bool
    """Whether no other GPU that takes it is known to be cheaper."""
    is_smallest: bool
    """Whether no other GPU that takes it has less memory."""


def estimate_bars(estimate: EstimatedCard, current_batch_size: int) -> list[MemoryBar]:
    wanted = {"today": ("Today", current_batch_size), "recommended": (WITH_MARGIN, estimate.safe_batch_size)}
    bars = []
    for key, (title, size) in wanted.items():
        if not size or (key == "recommended" and size == current_batch_size):
            continue
        point = estimate.at_batch_size(size)
        is_refused = (point is not None and not point.fits) or is_too_large(size, estimate)
        used = None if is_refused else estimate.memory_at_most(size)
        if used is not None and point is None:
            title = f"{title}, at most"
        unknown = "would not fit" if is_refused else "not estimated"
        bars.append(MemoryBar(key, title, size, used, estimate.capacity_bytes, is_refused, unknown, is_estimated=True))
    return bars


def figures(estimate: EstimatedCard, current_batch_size: int) -> list[tuple[str, str, str]]:
    """Return the three figures under the headline: what each is, its value, and a remark."""
    memory = None if is_too_large(current_batch_size, estimate) else estimate.memory_at_most(current_batch_size)
    bound = "" if estimate.at_batch_size(current_batch_size) else "at most "
    today = f"{bound}{bytes_text(memory)}" if memory is not None else "does not fit"
    margin = format_percent(estimate.margin_fraction)
    capped = "The search stops there, not the memory." if estimate.is_capped(estimate.largest_batch_size) else ""
    return [
        (
            "Largest batch size with the margin",
            size_text(estimate, estimate.safe_batch_size),
            f"It would still fit if it took {margin} more than predicted.",
        ),
        ("Largest batch size", size_text(estimate, estimate.largest_batch_size), capped or "It would fill the memory."),
        (f"Memory at {name_today(current_batch_size)}", today, f"Of {bytes_text(estimate.capacity_bytes)}."),
        *_global_batch(estimate),
    ]


def _global_batch(estimate: EstimatedCard) -> list[tuple[str, str, str]]:
    if estimate.spec.ranks == 1 or not estimate.safe_batch_size:
        return []
    size, _, remark = describe_global(estimate, estimate.safe_batch_size).partition(": ")
    return [("Global batch size with the margin", size, f"{remark}.")]


def key_figures(estimate: EstimatedCard, current_batch_size: int) -> tuple[KeyFigure, ...]:
    safe, largest, today = estimate.safe_batch_size, estimate.largest_batch_size, name_today(current_batch_size)
    if not largest:
        return ()
    of = f"of {bytes_text(estimate.capacity_bytes)}, at {today}"
    memory = estimate.memory_at_most(current_batch_size)
    if is_too_large(current_batch_size, estimate):
        unused = KeyFigure(UNUSED, "does not fit", f"{today} would run out of memory", tone=WASTE)
    elif memory is None:
        unused = KeyFigure(UNUSED, "not estimated", of, is_known=False)
    else:
        least = "" if estimate.at_batch_size(current_batch_size) else "at least "
        share = percent_estimated(1 - memory / estimate.capacity_bytes)
        unused = KeyFigure(UNUSED, f"{least}{share}", of, tone=WASTE if safe > current_batch_size else "")
    if not safe:
        use = KeyFigure(USE, "none", f"{largest:,} fits only without the margin", is_known=False)
    elif estimate.is_capped(safe):
        use = KeyFigure(USE, size_text(estimate, safe), "the search stops there", tone=GAIN)
    else:
        use = KeyFigure(USE, f"up to {safe:,}", "the largest with the margin", tone=GAIN)
    return unused, use, KeyFigure(SAVES, "not estimated", "only a measurement knows the speed", is_known=False)


def size_text(reached: Reached, size: int) -> str:
    """Write "508", "none", or "65,536 or more" for the size at which the search stopped."""
    return reached.size_text(size, OR_MORE, ",")


def estimate_stack(estimate: EstimatedCard, current_batch_size: int) -> Stack | None:
    """Return the memory by kind at the peak: of the largest size with the margin, else of today's."""
    point = estimate.at_batch_size(estimate.safe_batch_size) or estimate.at_batch_size(current_batch_size)
    if point is None:
        return None
    kinds = [(key, label, getattr(point.by_kind, f"{key}_bytes")) for key, label in _PARTS]
    return stack_of(point.batch_size, kinds, peak_phase=point.phase)


def kind_rows(estimate: EstimatedCard) -> list[tuple[str, list[int | None]]]:
    """Return the memory by kind, and each counter's peak, at each estimated size; rows without memory are left out."""
    kinds = [(label, [getattr(point.by_kind, f"{key}_bytes") for point in estimate.points]) for key, label in _PARTS]
    peaks = [(label, [getattr(point, f"{key}_bytes") for point in estimate.points]) for key, label in _COUNTERS]
    return [(label, sizes) for label, sizes in (*kinds, *peaks) if any(sizes)]


def gpu_rows(estimates: Sequence[EstimatedCard], current_batch_size: int, prices: Mapping[str, Price]) -> list[GpuRow]:
    most = max((estimate.largest_batch_size for estimate in estimates), default=0)
    ordered = sorted(estimates, key=lambda e: (-e.largest_batch_size, -e.gpu.total_bytes, e.gpu.name))
    fitting = [estimate.gpu.id for estimate in estimates if estimate.safe_batch_size >= current_batch_size]
    cheapest = cheapest_of({gpu_id: prices[gpu_id] for gpu_id in fitting if gpu_id in prices})
    smallest, rows = smallest_gpu(estimates, current_batch_size), []
    for estimate in ordered:
        gpu, largest, is_refused = estimate.gpu, estimate.largest_batch_size, is_too_large(current_batch_size, estimate)
        memory = None if is_refused else estimate.memory_at_most(current_batch_size)
        rows.append(
            GpuRow(
                estimate=estimate,
                name=describe_several(short_device_name(gpu.name), estimate.spec.ranks),
                largest_text=size_text(estimate, largest),
                safe_text=size_text(estimate, estimate.safe_batch_size),
                largest_percent=_share(largest, most),
                memory_at_current=memory,
                memory_percent=_share(memory, estimate.capacity_bytes),
                is_refused=is_refused,
                price=None if (of_one := prices.get(gpu.id)) is None else of_one.times(estimate.spec.ranks),
                takes_current=gpu.id in fitting,
                is_cheapest=gpu.id == cheapest,
                is_smallest=gpu.id == smallest,
            )
        )
    return rows


def how_rows(estimate: EstimatedCard, price: Price | None = None) -> list[tuple[str, str]]:
    gpu = estimate.gpu
    origin = "measured on such a GPU here" if gpu.calibrated else "nominal: no such GPU was calibrated here"
    context = f"{bytes_text(gpu.context_bytes)}, {origin}" if gpu.context_bytes else ""  # a CPU has none
    peak, point = "", estimate.at_batch_size(estimate.safe_batch_size)
    if point is not None and point.phase:
        operator = f", in {point.operator}" if point.operator else ""
        peak = f"at batch {point.batch_size:,} in {point.phase.replace('_', ' ')}{operator}"
    rows = [
        ("Method", METHODS.get(estimate.method, estimate.method)),
        ("Approximate because", estimate.approximate_because),
        ("Attention", describe_attention(estimate)),
        ("Precision", describe_emulation(estimate)),
        ("Memory of the GPU", bytes_text(gpu.total_bytes)),
        ("Context", context),
        *ranks_rows(estimate),
        ("Known error", describe_known_error(estimate.known_error, estimate.spec.ranks)),
        ("Margin of error", f"{format_percent(estimate.margin_fraction)} more memory than predicted"),
        ("Price", describe_price(price and price.times(estimate.spec.ranks))),
        ("Peak", peak),
        ("Took", duration(estimate.seconds)),
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


def _share(part: int | None, whole: int) -> str:
    return f"{min(1.0, (part or 0) / whole) * 100:.2f}%" if whole else "0%"
