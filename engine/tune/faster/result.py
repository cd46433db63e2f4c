"""PURE: what `tune --faster` found: a row for each variant, the verdict of the race, and their document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...race.field import Entry, RacedRound, RaceVerdict
from ...race.numbers import Numbers
from ...race.row import Row
from ...results.result import DeviceFacts, Savings
from ...spec import SCHEMA
from ..training import LOADER_LIMITS_FROM
from .spec import FasterSpec

GOAL = "faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Today's training. `loss_noise` is the largest relative difference between the losses of two starts of it."""

    batch_size: int
    samples_per_step: int
    memory_bytes: int
    step_seconds: float
    waiting_fraction: float | None
    loss_noise: float | None
    cores: int

    @property
    def is_limited_by_loader(self) -> bool:
        """Whether most of a step is spent waiting for data."""
        return (self.waiting_fraction or 0.0) >= LOADER_LIMITS_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterResult:
    """The result. `chosen_memory_bytes` and `chosen_numbers` are those of all chosen variants together."""

    spec: FasterSpec
    device: DeviceFacts
    environment: Mapping[str, Any]
    today: Today
    rows: tuple[Row, ...]
    verdict: RaceVerdict
    chosen: Entry
    savings: Savings
    rounds: tuple[RacedRound, ...]
    others_cores: float | None
    remarks: tuple[str, ...]
    seconds: float
    starts: int
    chosen_memory_bytes: int | None = None
    chosen_numbers: Numbers | None = None

    @property
    def is_found(self) -> bool:
        """Whether the training is faster with what was chosen."""
        return bool(self.chosen)

    @property
    def raced(self) -> int:
        """How many variants were raced."""
        return len({name for r in self.rounds for each in r.timed if len(each.entry) == 1 for name in each.entry})

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        fields = (
            *("environment", "chosen", "remarks", "seconds", "starts", "others_cores"),
            "chosen_memory_bytes",
        )
        return {
            "schema": SCHEMA,
            "goal": GOAL,
            "spec": self.spec.to_dict(),
            "device": self.device.to_dict(),
            "today": asdict(self.today),
            "variants": [asdict(row) for row in self.rows],
            "verdict": asdict(self.verdict),
            "savings": asdict(self.savings),
            "rounds": [asdict(each) for each in self.rounds],
            "chosen_numbers": None if self.chosen_numbers is None else asdict(self.chosen_numbers),
            **{name: getattr(self, name) for name in fields},
        }
