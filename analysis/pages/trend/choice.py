"""The list of series that the newest runs make up: each with its last figure, its change, and its line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from analysis.lists.trend.query import SAMPLES_MAX, recommended_speeds
from analysis.lists.trend.series import SizedSpeed
from analysis.lists.trend.step_detection import Step, find_steps, find_stretches
from analysis.models import Run
from analysis.pages.trend.context import settings_of
from analysis.presentation import labels
from analysis.presentation.charts.sparkline import line_over_runs
from analysis.presentation.formatting import number, percent_more
from analysis.presentation.kinds import settings_of_run
from analysis.runs.columns.series import SeriesKey

SERIES_MAX = 50
"""Series that are listed: of each a part of a result is read."""


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """A series: its address, its newest run, and the runs in its charts (certified, unshared device), oldest first."""

    address: str
    model_name: str
    place: str
    settings: tuple[str, ...]
    run_count: int
    is_own_script: bool
    newest: Run
    counted: tuple[Run, ...]
    sizes: tuple[int, ...]
    last_step: Step | None
    speed: SizedSpeed | None = None
    """The speed of the last run that counts, at its recommended size; None where it has no interval."""

    @property
    def last(self) -> str:
        return number(self.sizes[-1]) if self.sizes else ""

    @property
    def first(self) -> str:
        return number(self.sizes[0])

    @property
    def change(self) -> str:
        """Write how far the last size is from the first: "−12.0 %"; empty below two runs."""
        if len(self.sizes) < 2:
            return ""
        first, last = self.sizes[0], self.sizes[-1]
        return "none" if first == last else percent_more(last / first - 1)

    @property
    def line(self) -> str:
        if len(self.sizes) < 2:
            return ""
        text = f"Largest batch size over {len(self.sizes)} runs: from {self.first} to {self.last}"
        return line_over_runs(self.sizes, text)

    @property
    def step_text(self) -> str:
        """Write "−10.0 % with run 12"; empty where the series has no step."""
        step = self.last_step
        return f"{percent_more(step.fraction)} with run {self.counted[step.index].pk}" if step else ""

    @property
    def is_worse(self) -> bool:
        return self.last_step is not None and self.last_step.fraction < 0


def known_series(runs: Iterable[Run]) -> tuple[list[KnownSeries], int]:
    """Find the series of these runs, given newest first: the longest first, with the count of those left out."""
    found: dict[SeriesKey, list[Run]] = defaultdict(list)
    for run in runs:
        found[SeriesKey.of_run(run.spec, run.device_name)].append(run)
    most = sorted(found.items(), key=lambda item: -len(item[1]))[:SERIES_MAX]
    series = [_series(query, same) for query, same in most]
    speeds = recommended_speeds(one.counted[-1].pk for one in series if one.counted)
    shown = [replace(one, speed=speeds.get(one.counted[-1].pk)) if one.counted else one for one in series]
    return shown, len(found) - len(shown)


def _series(query: SeriesKey, runs: list[Run]) -> KnownSeries:
    counted = [run for run in runs if run.certified and not run.is_shared and run.largest_batch_size]
    counted.sort(key=lambda run: (run.finished_at is not None and run.finished_at.timestamp(), run.pk))
    counted = counted[-SAMPLES_MAX:]  # as many as the page of the series shows
    sizes = tuple(run.largest_batch_size for run in counted if run.largest_batch_size)
    steps = find_steps(find_stretches(sizes, grain=1))
    return KnownSeries(
        address=query.address,
        model_name=labels.model_name(query.model),
        place=labels.short_device_name(query.gpu),
        settings=tuple(settings_of_run(runs[0]) if query.is_own_script else settings_of(query)),
        run_count=len(runs),
        is_own_script=query.is_own_script,
        newest=runs[0],
        counted=tuple(counted),
        sizes=sizes,
        last_step=steps[-1] if steps else None,
    )
