"""The headline of a result page. It claims nothing that was not measured.

Where the speed-up has an interval, a claim must hold for the whole interval.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.formatting import factor, factor_range, round_percent, usd, usd_range
from analysis.presentation.labels import model_name, place, trains
from analysis.presentation.stored_result import StoredResult
from engine.result import Reason, Savings
from engine.stats import NOISE_FRACTION

CLEARLY_FASTER = 1 + NOISE_FRACTION
CENT = 0.01


@dataclass(frozen=True, slots=True)
class Headline:
    """The sentence in three parts, so that the page can colour the number in the middle."""

    before: str
    batch_size: int | None = None
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{'' if self.batch_size is None else self.batch_size}{self.after}"


def headline(result: StoredResult, savings: Savings | None = None) -> Headline:
    """Return the result and the recommendation; the saving follows the run's own assumptions or the reader's."""
    where, name = place(result.device, result.limit_bytes), model_name(result.spec["model"])
    if result.largest is None:
        return Headline(_nothing_fits(result, where, name))
    bound = "up to" if result.is_certified_out_of_memory else "at least"
    size = result.largest.batch_size
    samples = "sample" if size == 1 else "samples"
    reach = f"{where} {name} {trains(result.spec)} with {bound} {size:,} {samples}. "
    if result.recommended is None:
        return Headline(reach.strip())
    return Headline(
        reach + _opening(result), result.recommended.batch_size, _comparison(result, savings or result.savings)
    )


def _nothing_fits(result: StoredResult, where: str, name: str) -> str:
    if result.boundary.reason is Reason.ONE_SIZE:
        return f"{where} {name} does not fit with batch {result.boundary.refused_batch_size:,}."
    if result.boundary.reason is Reason.DOES_NOT_FIT:
        return f"{where} {name} does not fit: even batch 1 runs out of memory."
    if result.boundary.reason is Reason.FOREIGN_MEMORY:
        return f"{where} {name} could not be measured: other processes held the device's memory."
    return f"{where} {name} was not measured to the end: no batch size finished."


def _opening(result: StoredResult) -> str:
    is_unchanged = result.recommended and result.recommended.batch_size == result.current_batch_size
    return "Keep your " if is_unchanged else "Recommended: "


def _comparison(result: StoredResult, savings: Savings) -> str:
    """Compare the recommended size with today's."""
    today, speedup = result.current_batch_size, result.speedup
    recommended = result.recommended.batch_size if result.recommended else None
    if not result.is_speed_measurable:
        return _by_memory(result)
    if recommended == today and result.training is not None and result.training.turns is not None:
        return f": {result.training.turns['batch_sizes'][1]:,} is not more than 3 % faster."
    if recommended == today:
        return f": no measured size{_with_reserve(result)} is more than 3 % faster."
    if result.current_is_refused:
        return f"; your {today:,} does not fit."
    if speedup is None:
        return f"; its speed relative to your {today:,} was not measured."
    interval = factor_range(result.speedup_low, result.speedup_high)
    if is_faster(result):
        between = f" ({interval})" if interval else ""
        return f", {factor(speedup)} as fast as your {today:,}{between}{_saving(savings)}."
    figures = f"{factor(speedup)}, {interval}" if interval else factor(speedup)
    less = ", in less memory" if recommended and recommended < today else ""
    if is_slower(result):
        return f", slower than your {today:,} ({figures}){less}, with {_reserve(result)} of the memory left free."
    return f", about as fast as your {today:,} ({figures}){less}."


def is_faster(result: StoredResult) -> bool:
    """Whether the recommended size is faster by more than noise, at the lower end of the interval too."""
    if result.speedup is None or result.speedup < CLEARLY_FASTER:
        return False
    return result.speedup_low is None or result.speedup_low > 1


def is_slower(result: StoredResult) -> bool:
    """Whether the recommended size is slower by more than 3 %, at the upper end of the interval too.

    That is only possible where today's size leaves less than the reserve.
    """
    return result.keeps_reserve and result.speedup_high is not None and result.speedup_high < 1 / CLEARLY_FASTER


def _by_memory(result: StoredResult) -> str:
    """Explain a recommendation without a comparison of speeds, and why there is none."""
    why = (result.speed and result.speed.reason) or "its speed was not compared"
    if not result.compares_speeds:  # it was not requested, which the page says elsewhere
        why = ""
    if result.keeps_reserve:
        chosen = f", the largest measured size that leaves {_reserve(result)} of the memory free"
    else:
        chosen = f". No measured size leaves {_reserve(result)} of the memory free"
    return f"{chosen}. {why[:1].upper()}{why[1:]}." if why else f"{chosen}."


def _with_reserve(result: StoredResult) -> str:
    return f" that leaves {_reserve(result)} of the memory free" if result.keeps_reserve else ""


def _reserve(result: StoredResult) -> str:
    return round_percent(result.speed.reserve_fraction if result.speed else 0.0)


def _saving(savings: Savings) -> str:
    """Write ", saving $0.45 a run"; nothing where it may be less than a cent, or is unknown."""
    per_run, low = savings.per_run_usd, savings.per_run_usd_low
    if per_run is None or min(per_run, per_run if low is None else low) < CENT:
        return ""
    interval = usd_range(low, savings.per_run_usd_high)
    return f", saving {usd(per_run)} a run{f' ({interval})' if interval else ''}"
