"""The steps of a series with their texts, the facts that changed with them, and people's notes on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.lists.environment import changed
from analysis.lists.trend.series import Sample, Series
from analysis.lists.trend.step_detection import Step
from analysis.models import TrendAcknowledgement
from analysis.presentation.formatting import percent_more
from analysis.presentation.origin import Origin

Acknowledgements = Mapping[tuple[int, str], TrendAcknowledgement]


@dataclass(frozen=True, slots=True)
class StepFound:
    """A step with its text, the facts that changed with it, and its note."""

    series: Series
    step: Step
    acknowledgement: TrendAcknowledgement | None

    @property
    def before(self) -> Sample:
        return self.series.samples[self.step.index - 1]

    @property
    def after(self) -> Sample:
        return self.series.samples[self.step.index]

    @property
    def origin(self) -> Origin:
        return self.after.origin

    @property
    def is_worse(self) -> bool:
        return (self.step.fraction > 0) != (self.series.better == "higher")

    @property
    def sentence(self) -> str:
        verb = "rose" if self.step.fraction > 0 else "fell"
        size = percent_more(self.step.fraction).lstrip("+−")
        was, now = self.series.text(self.step.before), self.series.text(self.step.after)
        return f"{self.series.title} {verb} by {size}, from {was} to {now}."

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return changed(self.before.facts, self.after.facts)


def steps_found(series: Series, acknowledgements: Acknowledgements) -> list[StepFound]:
    return [
        StepFound(series, step, acknowledgements.get((series.samples[step.index].run_id, series.key)))
        for step in series.steps
    ]
