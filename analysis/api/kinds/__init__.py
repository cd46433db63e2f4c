"""What the API takes for each kind of run, and says of it: one module a kind, and the table of them."""

from __future__ import annotations

from analysis.api.kinds.command import Command
from analysis.api.kinds.estimate import Estimate
from analysis.api.kinds.measurement import Measurement
from analysis.api.kinds.race import OwnRace, Race
from analysis.api.kinds.requests import Requests
from analysis.api.kinds.validation import Validation
from analysis.api.kinds.watch import Watch
from engine.questions.kinds import ByKind

BY_KIND = ByKind[Requests](
    size=(Measurement(), Command()),
    faster=(Race(), OwnRace()),
    estimate=(Estimate(),),
    validation=(Validation(),),
    watch=(Watch(),),
)
