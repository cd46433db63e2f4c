"""The parallel coordinates of the compared runs: their settings on the left, their figures on the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.lists.comparison.compared_run import ComparedRun, Outcome
from analysis.lists.comparison.metrics import million_samples_usd
from analysis.presentation.charts.parallel import Dimension, ParallelChart, ParallelRun, parallel_chart
from analysis.presentation.formatting import bytes_text, factor, number, rate, usd_closely
from analysis.presentation.labels import describe_input
from engine.settings.step_settings import OPTIMIZER_LABELS
from engine.speed.claim import describe_lower_bound

Value = float | str | None
PARALLEL_MIN = 3
"""Runs from which lines show a pattern: what two differ in, the tables above say."""
_FIGURES: tuple[tuple[str, Callable[[Outcome], float | None], Callable[[float], str]], ...] = (
    ("Largest", lambda outcome: outcome.largest_batch_size, number),
    ("Recommended", lambda outcome: outcome.recommended_batch_size, number),
    ("Samples/s", lambda outcome: outcome.samples_per_second, rate),
    ("Memory", lambda outcome: outcome.memory_bytes, bytes_text),
    ("$ per million", million_samples_usd, usd_closely),
)


def parallel_of(subjects: Sequence[ComparedRun]) -> ParallelChart | None:
    """Draw the runs that have figures; None below PARALLEL_MIN, or where they hardly differ."""
    drawn = [(subject, subject.outcome) for subject in subjects if subject.outcome]
    if len(drawn) < PARALLEL_MIN:
        return None
    runs = [ParallelRun(one.name, one.run.get_absolute_url(), one.look, one.is_predicted) for one, _ in drawn]
    compared = [subject for subject, _ in drawn]
    at_least = {"Largest": frozenset(place for place, (_, outcome) in enumerate(drawn) if outcome.is_lower_bound)}
    figures = [
        Dimension(title, tuple(read(outcome) for _, outcome in drawn), text, at_least.get(title, frozenset()))
        for title, read, text in _FIGURES
    ]
    return parallel_chart(runs, [*_settings(compared), *figures, *_of_runs(compared)])


def _settings(subjects: Sequence[ComparedRun]) -> list[Dimension]:
    return [
        Dimension("Model", tuple(one.model_name for one in subjects)),
        Dimension("Input", tuple(None if one.runs_own_code else describe_input(one.spec) for one in subjects)),
        Dimension("Device", tuple(one.place for one in subjects)),
        Dimension("Precision", tuple(one.run.precision or None for one in subjects)),
        Dimension(
            "Optimizer", tuple(OPTIMIZER_LABELS.get(one.run.optimizer, one.run.optimizer) or None for one in subjects)
        ),
        Dimension("Today", tuple(one.run.spec.get("current_batch_size") for one in subjects), number),
    ]


def _of_runs(subjects: Sequence[ComparedRun]) -> list[Dimension]:
    at_least = frozenset(place for place, one in enumerate(subjects) if one.run.speedup is None)
    speedups = tuple(one.run.claimed_speedup for one in subjects)
    return [
        Dimension("Speed-up", speedups, factor, at_least, describe_lower_bound),
        Dimension("Waste today", tuple(one.run.current_waste_bytes for one in subjects), bytes_text),
    ]
