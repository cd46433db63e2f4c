"""How pages present each kind of run: a module for each, all of one protocol."""

from __future__ import annotations

from analysis.models import Run
from analysis.presentation.kinds.estimate import Estimate
from analysis.presentation.kinds.presentation import Presentation
from analysis.presentation.kinds.race import OwnRace, Race
from analysis.presentation.kinds.size import Command, Measurement
from analysis.presentation.kinds.validation import Validation
from analysis.presentation.kinds.watch import Watch
from analysis.presentation.labels import describe_limit, limit_of_run, settings_in_full
from engine.questions.kinds import ByKind

BY_KIND = ByKind[Presentation](
    size=(Measurement(), Command()),
    faster=(Race(), OwnRace()),
    estimate=(Estimate(),),
    validation=(Validation(),),
    watch=(Watch(),),
)


def presentation_of(run: Run) -> Presentation:
    return BY_KIND[run.kind]


def run_place(run: Run) -> str:
    return presentation_of(run).place(run)


def facts_of_run(run: Run) -> list[str]:
    """Name the settings of a run for its own page, which has room for what the weights are in."""
    return settings_in_full(settings_of_run(run), run.spec)


def settings_of_run(run: Run) -> list[str]:
    """Name the settings of a run and its memory limit, which tell apart runs of one model and device."""
    kind = presentation_of(run)
    limit = describe_limit(limit_of_run(run)) if kind.has_limit else ""
    return [*kind.settings(run.spec), *filter(None, [limit])]
