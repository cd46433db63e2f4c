"""The answer of an estimate as one sentence of at most 17 words: pure, and for pages, messages and titles alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.presentation.formatting import percent_estimated, usd
from analysis.presentation.labels import describe_limit
from analysis.runs.gpu_catalog import Price
from engine.documents.estimated import EstimatedCard
from engine.estimate.types import OR_MORE, EstimatedGpu, is_capped
from engine.text.today import name_today

WORDS_MOST = 17
_NOT_IN_HEADLINES = ("NVIDIA ", "GeForce ", "Tesla ", "AMD ", "Instinct ")
_SPOKEN_WITH_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel: an A100, an H100, an RTX 4090
_NUMBER_WITH_UNIT = re.compile(r"(?<=\d) (?=[KMGT]?i?B\b|%)")


def headline(estimate: EstimatedCard, spec: Mapping[str, Any], batch_size: int | None = None) -> str:
    """Write "Up to 480 fit an A100; your 32 leaves 80 % unused.": how many are faster, no estimate knows.

    `batch_size` is today's, by default the spec's.
    """
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
    reach = f"{safe:,} {OR_MORE}" if is_capped(safe, estimate.limits, largest) else f"Up to {safe:,}"
    unused = describe_unused(estimate, today)
    full = [f"{reach} fit {gpu}; {name_today(today)} {unused}."] if unused else []
    return _first_short([*full, f"{reach} fit {gpu}, against {name_today(today)}.", f"{reach} fit {gpu}."])


def is_too_large(size: int, estimate: EstimatedCard) -> bool:
    largest = estimate.largest_batch_size
    return size > largest and not is_capped(largest, estimate.limits, largest)


def headline_of_all(
    estimates: Sequence[EstimatedCard],
    spec: Mapping[str, Any],
    left_out: int = 0,
    prices: Mapping[str, Price] | None = None,
) -> str:
    """Say how many GPUs take today's batch size, and the cheapest; `left_out` cannot run the settings at all."""
    size = int(spec["current_batch_size"])
    fitting = [each.gpu for each in estimates if each.safe_batch_size >= size]
    return _count(fitting, len(estimates) + left_out, spec, prices or {})


def _count(fitting: Sequence[EstimatedGpu], count: int, spec: Mapping[str, Any], prices: Mapping[str, Price]) -> str:
    """Write "28 of 34 GPUs fit your 32; the cheapest is a T4, $0.35 an hour."; without prices it names the smallest.

    Where some of them have no price it writes "lowest known price: a T4, $0.35 an hour."
    """
    size, limit = int(spec["current_batch_size"]), describe_limit(spec.get("memory_limit_bytes"))
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
    """Write a GPU's name with its article, and without what no reader needs: its maker, and what follows a comma.

    Of several GPUs it writes "each of 8 A100 80 GB".
    """
    short = name.partition(",")[0]
    for part in _NOT_IN_HEADLINES:
        short = short.removeprefix(part)
    return with_article(short) if ranks == 1 else f"{of}{ranks} {short}"
