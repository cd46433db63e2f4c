"""The rules of each kind of run: one module a kind, and the table of them."""

from __future__ import annotations

from typing import Any

from analysis.models import Run
from analysis.runs.kinds.command import Command
from analysis.runs.kinds.estimate import Estimate
from analysis.runs.kinds.measurement import Measurement
from analysis.runs.kinds.race import OwnRace, Race
from analysis.runs.kinds.rules import Rules
from analysis.runs.kinds.validation import Validation
from analysis.runs.kinds.watch import Watch
from engine.questions.kinds import ByKind, Spec

BY_KIND = ByKind[Rules](
    size=(Measurement(), Command()),
    faster=(Race(), OwnRace()),
    estimate=(Estimate(),),
    validation=(Validation(),),
    watch=(Watch(),),
)


def rules_of(run: Run) -> Rules:
    return BY_KIND[run.kind]


def kind_of(spec: Spec) -> str:
    return next(kind for kind, rules in BY_KIND.items() if type(spec) in rules.spec_types)


def devices_needed(spec: Spec) -> int:
    return BY_KIND[kind_of(spec)].device_count(spec)


def spec_columns(spec: Spec) -> dict[str, Any]:
    kind = kind_of(spec)
    return {"kind": kind, **BY_KIND[kind].spec_columns(spec)}
