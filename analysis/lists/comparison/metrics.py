"""The figures that are compared, and each one's difference to the baseline: absolute, in percent, and in a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.formatting import NOT_MEASURED, bytes_text, number, rate, step_time, times, usd
from analysis.lists.comparison.compared_run import ComparedRun, Outcome, Range
from engine.facts.savings import cost_per_million_samples_usd
from engine.facts.stats import NOISE_FRACTION, is_same_figure

Read = Callable[[Outcome], float | None]
ReadRange = Callable[[Outcome], Range | None]
FACTOR_FROM = 9.0
"""Changes beyond this factor are shown as 23.8x, not as +2282 %."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a run; `better` is "higher", "lower" or empty; `key` is its name for programs."""

    key: str
    name: str
    kind: str
    read: Read
    text: Callable[[float], str]
    better: str = ""
    noise_fraction: float = 0.0
    interval: ReadRange | None = None
    is_exact: bool = False
    """Whether it is a count: then a difference of one counts."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The way from the baseline's figure to this one; `fraction` is None where the baseline is 0.

    `is_bound`: at least this difference, as one figure is a lower bound. `note`: what keeps it from being judged.
    """

    difference: float
    fraction: float | None
    verdict: str
    text: str
    is_bound: bool = False
    note: str = ""

    @property
    def arrow(self) -> str:
        if self.verdict == "same":
            return "≈" if self.text else "="
        return "▲" if self.difference > 0 else "▼"

    @property
    def word(self) -> str:
        """The word next to arrow and colour, for readers who cannot see them."""
        if self.verdict == "same":
            return "about the same" if self.text else "the same"
        return self.verdict or ("more" if self.difference > 0 else "less")

    @property
    def percent(self) -> str:
        """Write the change with two figures; from ten times as much on, as a factor."""
        if not self.fraction or not self.text:
            return ""
        least = "at least " if self.is_bound else ""
        if self.fraction >= FACTOR_FROM:
            return f"{least}{times(1 + self.fraction)}"
        size = abs(self.fraction) * 100
        return f"{least}{_sign(self.fraction)}{size:.{0 if size >= 10 else 1}f} %"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run's figure, as text too; no delta for the baseline, for another workload, or without a figure."""

    text: str
    delta: Delta | None
    value: float | None
    interval: Range | None = None
    interval_text: str = ""
    is_lower_bound: bool = False

    @property
    def is_known(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class MetricRow:
    key: str
    name: str
    kind: str
    cells: tuple[Cell, ...]


def metric_rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None) -> list[MetricRow]:
    safe = [_SAFE] if any(subject.outcome and subject.is_predicted for subject in subjects) else []
    of_ranks = _OF_RANKS if any(subject.outcome and subject.outcome.ranks > 1 for subject in subjects) else ()
    metrics = [LARGEST, *safe, *_METRICS, *of_ranks, *_at_common(common_batch_size(subjects))]
    return [
        MetricRow(metric.key, metric.name, metric.kind, tuple(_cell(metric, one, baseline) for one in subjects))
        for metric in metrics
    ]


def common_batch_size(subjects: Sequence[ComparedRun]) -> int | None:
    """Return the largest batch size whose memory is known for every run with figures; None if there is none."""
    known = [set(subject.outcome.memory) for subject in subjects if subject.outcome]
    return max(set.intersection(*known), default=None) if known else None


def million_samples_usd(outcome: Outcome) -> float | None:
    return cost_per_million_samples_usd(outcome.price_per_hour_usd, outcome.samples_per_second)


def delta(metric: Metric, value: float, base: float, *, is_within_intervals: bool = False) -> Delta:
    """Return the way from the baseline's figure to `value`; a difference within the intervals claims nothing."""
    difference = value - base
    fraction = difference / base if base else None
    if value == base or (not metric.is_exact and is_same_figure(value, base)):
        return Delta(difference, fraction, "same", "")
    verdict = ""
    if is_within_intervals or (fraction is not None and abs(fraction) <= metric.noise_fraction):
        verdict = "same"
    elif metric.better:
        verdict = "better" if (difference > 0) == (metric.better == "higher") else "worse"
    size = metric.text(abs(difference))
    return Delta(difference, fraction, verdict, size if size.startswith("less") else f"{_sign(difference)}{size}")


def _cell(metric: Metric, subject: ComparedRun, baseline: ComparedRun | None) -> Cell:
    value = metric.read(subject.outcome) if subject.outcome else None
    if value is None or subject.outcome is None:
        return Cell(_why_unknown(metric, subject), None, None)
    base = metric.read(baseline.outcome) if baseline and baseline.outcome else None
    is_bound = metric is LARGEST and subject.outcome.is_lower_bound
    text = f"{'≥ ' if is_bound else ''}{metric.text(value)}"
    interval = _interval(metric, subject)
    range_text = " to ".join(map(metric.text, interval)) if interval else ""
    if base is None or baseline is None or subject is baseline or subject.workload != baseline.workload:
        return Cell(text, None, value, interval, range_text, is_bound)
    # an estimate is not better than a measurement, nor what is emulated: only runs of one kind are judged
    judged = metric if subject.kind == baseline.kind else replace(metric, better="")
    if metric is LARGEST:
        return Cell(text, _limit_delta(judged, subject, baseline), value, is_lower_bound=is_bound)
    other = _interval(metric, baseline)
    meet = interval is not None and other is not None and interval[0] <= other[1] and other[0] <= interval[1]
    found = delta(judged, value, base, is_within_intervals=meet)
    return Cell(text, found, value, interval, range_text)


def _limit_delta(metric: Metric, subject: ComparedRun, baseline: ComparedRun) -> Delta | None:
    """Compare two limits; None where a lower bound leaves open which limit is larger, or where nothing fits."""
    one, other = subject.outcome, baseline.outcome
    if one is None or other is None or not one.largest_batch_size or not other.largest_batch_size:
        return None  # that nothing fits is no size, so there is no way from or to it
    found = delta(metric, one.largest_batch_size, other.largest_batch_size)
    if one.is_lower_bound or other.is_lower_bound:
        is_larger_for_sure = not other.is_lower_bound and found.difference > 0
        is_smaller_for_sure = not one.is_lower_bound and found.difference < 0
        if not (is_larger_for_sure or is_smaller_for_sure):
            return None
        found = replace(found, is_bound=True, text=f"at least {found.text}")
    if subject.place == baseline.place and one.limit_bytes != other.limit_bytes and one.limit_bytes:
        limits = f"with {bytes_text(one.limit_bytes)} against {bytes_text(other.limit_bytes or 0)}"
        return replace(found, verdict="same" if found.verdict == "same" else "", note=limits)
    return found


def _interval(metric: Metric, subject: ComparedRun) -> Range | None:
    return metric.interval(subject.outcome) if metric.interval and subject.outcome else None


def _why_unknown(metric: Metric, subject: ComparedRun) -> str:
    if metric is _SAFE:
        return "–"
    if metric is _RECOMMENDED and subject.outcome:
        return "none"  # of an estimate, too: the size with the margin has a row of its own
    return "not estimated" if subject.is_predicted and subject.outcome else NOT_MEASURED


def _at_common(size: int | None) -> list[Metric]:
    if size is None:
        return []
    memory, speed = f"Peak memory at batch {size:,}", f"Samples/s at batch {size:,}"
    return [
        Metric("common_peak_bytes", memory, "measured", lambda o: o.memory.get(size), bytes_text, "lower"),
        _speed("common_samples_per_second", speed, lambda o: o.speed.get(size), lambda o: o.speed_intervals.get(size)),
    ]


def _sign(value: float) -> str:
    return "+" if value > 0 else "−"


def _speed(key: str, name: str, read: Read, interval: ReadRange) -> Metric:
    return Metric(key, name, "measured", read, rate, "higher", NOISE_FRACTION, interval)


def _recommended_range(outcome: Outcome) -> Range | None:
    return outcome.speed_intervals.get(outcome.recommended_batch_size or 0)


def _cost_range(outcome: Outcome) -> Range | None:
    """Turn the interval of the speed into one of the cost: the faster, the cheaper, so the ends change places."""
    cost, speeds = million_samples_usd(outcome), _recommended_range(outcome)
    if cost is None or speeds is None or not outcome.samples_per_second:
        return None
    low, high = speeds
    return cost * outcome.samples_per_second / high, cost * outcome.samples_per_second / low


def _speed_of_a_rank(outcome: Outcome) -> float | None:
    return None if outcome.samples_per_second is None else outcome.samples_per_second / outcome.ranks


def _range_of_a_rank(outcome: Outcome) -> Range | None:
    speeds = _recommended_range(outcome)
    return None if speeds is None else (speeds[0] / outcome.ranks, speeds[1] / outcome.ranks)


LARGEST = Metric(
    *("largest_batch_size", "Largest batch size", "measured", lambda o: o.largest_batch_size),
    lambda size: number(size) if size else "does not fit",
    "higher",
    is_exact=True,
)
_SAFE = Metric(
    "safe_batch_size", "Largest with margin", "estimated", lambda o: o.safe_batch_size, number, "higher", is_exact=True
)
"""Only of estimates, which recommend nothing: no speed is known."""
_RECOMMENDED = Metric(
    *("recommended_batch_size", "Recommended batch size", "measured", lambda o: o.recommended_batch_size, number),
    is_exact=True,
)
RECOMMENDED_SPEED = _speed(
    "recommended_samples_per_second", "Samples/s, recommended", lambda o: o.samples_per_second, _recommended_range
)
_METRICS = (
    _RECOMMENDED,
    RECOMMENDED_SPEED,
    _speed(
        *("fastest_samples_per_second", "Samples/s, fastest", lambda o: o.fastest_samples_per_second),
        lambda o: o.speed_intervals.get(o.fastest_batch_size or 0),
    ),
    Metric("recommended_step_seconds", "Step time, recommended", "measured", lambda o: o.step_seconds, step_time),
    Metric("recommended_memory_bytes", "Memory, recommended", "measured", lambda o: o.memory_bytes, bytes_text),
    Metric(
        *("million_samples_usd", "A million samples", "derived", million_samples_usd, usd, "lower", NOISE_FRACTION),
        interval=_cost_range,
    ),
)
_OF_RANKS = (
    Metric(
        *("recommended_on_all_ranks", "Recommended, of all ranks", "derived"),
        lambda o: None if o.recommended_batch_size is None else o.recommended_batch_size * o.ranks,
        number,
        is_exact=True,
    ),
    Metric(
        *("recommended_samples_per_second_per_rank", "Samples/s, recommended, per rank", "derived", _speed_of_a_rank),
        rate,
        "higher",
        NOISE_FRACTION,
        _range_of_a_rank,
    ),
)
"""What strategies and numbers of ranks are compared by; of runs on one device alone they would say nothing."""
