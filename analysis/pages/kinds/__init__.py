"""The pages of each kind of run: a module for each, all of one protocol."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.models import Run, RunKind
from analysis.pages.kinds.command import Command
from analysis.pages.kinds.estimate import Estimate
from analysis.pages.kinds.measurement import Measurement
from analysis.pages.kinds.page import KindPages
from analysis.pages.kinds.validation import Validation

BY_KIND: Mapping[RunKind, KindPages] = {
    RunKind.MEASUREMENT: Measurement(),
    RunKind.COMMAND: Command(),
    RunKind.ESTIMATE: Estimate(),
    RunKind.VALIDATION: Validation(),
}


def pages_of(run: Run) -> KindPages:
    """Return the pages of a run of this kind."""
    return BY_KIND[RunKind(run.kind)]
