"""The figures that are compared, and each one's difference to the baseline: absolute, in percent, and in a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.pages.compare.compared_run import ComparedRun, Outcome, Range
from analysis.presentation.formatting import NOT_MEASURED, bytes_text, number, rate, step_time, times, usd
from engine.savings import cost_per_million_samples_usd
from engine.stats import NOISE_FRACTION

Read = Callable[[Outcome], float | None]
ReadRange = Callable[[Outcome], Range | None]
FACTOR_FROM = 9.0
"""A change of so many times the figure is written as a factor: +2282 % is hard to read, 23.8x is not."""


def _no_interval(outcome: Outcome) -> Range | None:
    return None


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a run. `better` is "higher", "lower", or empty where neither is; `key` is its name for programs.

    Two figures whose intervals meet are the same: the difference may be none.
    """

    key: str
    name: str
    kind: str
    read: Read
    text: Callable[[float], str]
    better: str = ""
    noise_fraction: float = 0.0
    interval: ReadRange = _no_interval


@dataclass(frozen=True, slots=True)
class Delta:
    """The way from the baseline's figure to this one. `fraction` is None where the baseline is 0."""

    difference: float
    fraction: float | None
    verdict: str
    text: str

    @property
    def arrow(self) -> str:
        if self.verdict == "same":
            return "≈" if self.difference else "="
        return "▲" if self.difference > 0 else "▼"

    @property
    def word(self) -> str:
        """The word next to arrow and colour, for readers who cannot see them."""
        if self.verdict == "same":
            return "about the same" if self.difference else "the same"
        return self.verdict or ("more" if self.difference > 0 else "less")

    @property
    def percent(self) -> str:
        """Write the change with two figures; from ten times as much on, as a factor."""
        if not self.fraction:
            return ""
        if self.fraction >= FACTOR_FROM:
            return times(1 + self.fraction)
        size = abs(self.fraction) * 100
        return f"{_sign(self.fraction)}{size:.{0 if size >= 10 else 1}f} %"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run's figure, as text too, and how it compares.

    There is no delta for the baseline, for another workload, and where a figure is missing.
    """

    text: str
    delta: Delta | None
    value: float | None
    interval: Range | None = None
    interval_text: str = ""

    @property
    def is_known(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric with its cell for every run."""

    key: str
    name: str
    kind: str
    cells: tuple[Cell, ...]


def metric_rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None) -> list[MetricRow]:
    """All metrics, the ones at the largest batch size that every run measured last."""
    metrics = [*_METRICS, *_at_common(common_batch_size(subjects))]
    return [_row(metric, subjects, baseline) for metric in metrics]


def common_batch_size(subjects: Sequence[ComparedRun]) -> int | None:
    """Return the largest batch size whose memory is known of every run that has figures; None where there is none."""
    known = [set(subject.outcome.memory) for subject in subjects if subject.outcome]
    return max(set.intersection(*known), default=None) if known else None


def million_samples_usd(outcome: Outcome) -> float | None:
    """At the recommended size."""
    return cost_per_million_samples_usd(outcome.price_per_hour_usd, outcome.samples_per_second)


def delta(metric: Metric, value: float, base: float, *, is_within_intervals: bool = False) -> Delta:
    """From the baseline's figure to this one. Nothing is claimed of a difference that lies within the intervals."""
    difference = value - base
    fraction = difference / base if base else None
    verdict = "same" if is_within_intervals else _verdict(metric, difference, fraction)
    return Delta(difference, fraction, verdict, _difference_text(metric, difference))


def _meet(one: Range | None, other: Range | None) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]


def _difference_text(metric: Metric, difference: float) -> str:
    if not difference:
        return ""
    size = metric.text(abs(difference))
    return size if size.startswith("less") else f"{_sign(difference)}{size}"


def _verdict(metric: Metric, difference: float, fraction: float | None) -> str:
    if difference == 0 or (fraction is not None and abs(fraction) <= metric.noise_fraction):
        return "same"
    if not metric.better:
        return ""
    return "better" if (difference > 0) == (metric.better == "higher") else "worse"


def _row(metric: Metric, subjects: Sequence[ComparedRun], baseline: ComparedRun | None) -> MetricRow:
    base = metric.read(baseline.outcome) if baseline and baseline.outcome else None
    cells = tuple(_cell(metric, one, baseline, base) for one in subjects)
    return MetricRow(metric.key, metric.name, metric.kind, cells)


def _cell(metric: Metric, subject: ComparedRun, baseline: ComparedRun | None, base: float | None) -> Cell:
    value = metric.read(subject.outcome) if subject.outcome else None
    if value is None:
        return Cell(_why_unknown(subject), None, None)
    text = f"{_bound(metric, subject)}{metric.text(value)}"
    interval = _interval(metric, subject)
    range_text = " to ".join(map(metric.text, interval)) if interval else ""
    if base is None or baseline is None or subject is baseline or subject.workload != baseline.workload:
        return Cell(text, None, value, interval, range_text)
    if metric is LARGEST and not (value and base):  # that nothing fits is no size, so there is no way from or to it
        return Cell(text, None, value, interval, range_text)
    is_within = _meet(interval, _interval(metric, baseline))
    found = delta(_judged(metric, subject, baseline), value, base, is_within_intervals=is_within)
    return Cell(text, found, value, interval, range_text)


def _judged(metric: Metric, subject: ComparedRun, baseline: ComparedRun) -> Metric:
    """Judge only runs of one kind: an estimate is not better than a measurement."""
    return metric if subject.is_estimate == baseline.is_estimate else replace(metric, better="")


def _interval(metric: Metric, subject: ComparedRun) -> Range | None:
    return metric.interval(subject.outcome) if subject.outcome else None


def _why_unknown(subject: ComparedRun) -> str:
    return "not estimated" if subject.is_estimate and subject.outcome else NOT_MEASURED


def _bound(metric: Metric, subject: ComparedRun) -> str:
    """≥ where larger sizes may fit."""
    outcome = subject.outcome
    is_measured = outcome is not None and not subject.is_estimate and bool(outcome.memory)
    return "≥ " if metric is LARGEST and is_measured and outcome and not outcome.is_certified else ""


def _at_common(size: int | None) -> list[Metric]:
    if size is None:
        return []
    memory, speed = f"Peak memory at batch {size:,}", f"Samples/s at batch {size:,}"
    return [
        Metric("common_peak_bytes", memory, "measured", lambda o: o.memory.get(size), _bytes, "lower"),
        _speed("common_samples_per_second", speed, lambda o: o.speed.get(size), lambda o: o.speed_intervals.get(size)),
    ]


def _bytes(value: float) -> str:
    return bytes_text(int(value))


def _size(value: float) -> str:
    return number(value) if value else "does not fit"


def _sign(value: float) -> str:
    return "+" if value > 0 else "−"


def _speed(key: str, name: str, read: Read, interval: ReadRange) -> Metric:
    return Metric(key, name, "measured", read, rate, "higher", NOISE_FRACTION, interval)


def _recommended_range(outcome: Outcome) -> Range | None:
    return outcome.speed_intervals.get(outcome.recommended_batch_size or 0)


def _fastest_range(outcome: Outcome) -> Range | None:
    return outcome.speed_intervals.get(outcome.fastest_batch_size or 0)


def _cost_range(outcome: Outcome) -> Range | None:
    """Turn the interval of the speed into one of the cost: the faster, the cheaper, so the ends change places."""
    cost, speeds = million_samples_usd(outcome), _recommended_range(outcome)
    if cost is None or speeds is None or not outcome.samples_per_second:
        return None
    low, high = speeds
    return cost * outcome.samples_per_second / high, cost * outcome.samples_per_second / low


LARGEST = Metric(
    "largest_batch_size", "Largest batch size", "measured", lambda o: o.largest_batch_size, _size, "higher"
)
_METRICS = (
    LARGEST,
    Metric("recommended_batch_size", "Recommended batch size", "measured", lambda o: o.recommended_batch_size, number),
    _speed(
        "recommended_samples_per_second", "Samples/s, recommended", lambda o: o.samples_per_second, _recommended_range
    ),
    _speed("fastest_samples_per_second", "Samples/s, fastest", lambda o: o.fastest_samples_per_second, _fastest_range),
    Metric("recommended_step_seconds", "Step time, recommended", "measured", lambda o: o.step_seconds, step_time),
    Metric("recommended_memory_bytes", "Memory, recommended", "measured", lambda o: o.memory_bytes, _bytes),
    Metric(
        *("million_samples_usd", "A million samples", "derived", million_samples_usd, usd, "lower", NOISE_FRACTION),
        interval=_cost_range,
    ),
)
