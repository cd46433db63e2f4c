"""The one sentence a result page leads with. It promises nothing that was not measured."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.formatting import factor, usd
from analysis.presentation.labels import model_name, place, trains
from analysis.presentation.stored_result import StoredResult
from engine.result import Reason, Savings

CLEARLY_FASTER = 1.03
"""The recommendation is the smallest size within 3 % of the fastest: below this, "faster" would be noise."""
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
    """What the run found and what to do; the money under the run's own assumptions or the reader's."""
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
    if result.boundary.reason is Reason.DOES_NOT_FIT:
        return f"{where} {name} does not fit: even batch 1 runs out of memory."
    if result.boundary.reason is Reason.FOREIGN_MEMORY:
        return f"{where} {name} could not be measured: other processes held the device's memory."
    return f"{where} {name} was not measured to the end: no batch size finished."


def _opening(result: StoredResult) -> str:
    is_kept = result.recommended and result.recommended.batch_size == result.current_batch_size
    return "Keep your " if is_kept else "Use "


def _comparison(result: StoredResult, savings: Savings) -> str:
    """What the recommended size gains over today's."""
    today, speedup = result.current_batch_size, result.speedup
    recommended = result.recommended.batch_size if result.recommended else None
    if recommended == today:
        return ": no measured size is more than 3 % faster."
    if result.current_is_refused:
        return f": your {today:,} does not fit."
    if speedup is None:
        return f"; its speed against your {today:,} was not measured."
    if speedup >= CLEARLY_FASTER:
        return f": {factor(speedup)} as fast as your {today:,}{_saving(savings)}."
    less = ", in less memory" if recommended and recommended < today else ""
    return f": about as fast as your {today:,} ({factor(speedup)}){less}."


def _saving(savings: Savings) -> str:
    """ ", saving $0.45 a run"; nothing where it is less than a cent, or not known."""
    per_run = savings.per_run_usd
    return "" if per_run is None or per_run < CENT else f", saving {usd(per_run)} a run"
