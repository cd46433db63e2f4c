"""The pages of each kind of run: a module for each, all of one protocol."""

from __future__ import annotations

from analysis.models import Run
from analysis.pages.kinds.estimate import Estimate
from analysis.pages.kinds.page import KindPages
from analysis.pages.kinds.race import Race
from analysis.pages.kinds.size import Command, Measurement
from analysis.pages.kinds.validation import Validation
from analysis.pages.kinds.watch import Watch
from engine.questions.kinds import ByKind

BY_KIND = ByKind[KindPages](
    size=(Measurement(), Command()),
    faster=(Race(), Race()),
    estimate=(Estimate(),),
    validation=(Validation(),),
    watch=(Watch(),),
)


def pages_of(run: Run) -> KindPages:
    return BY_KIND[run.kind]
