"""PURE: what `tune --faster` found: a row for each variant, the verdicts of its races, and their document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ....facts.result import DeviceFacts, Savings
from ....facts.speed_rounds import SpeedClaim
from ....race.field import Entry, RacedRound, RaceVerdict
from ....race.found import RaceFound
from ....race.numbers import Numbers
from ....race.row import VariantRow
from ....race.text import NONE_RACED, NOT_TOGETHER, describe_memory, less_memory, memory_savers
from ....settings.spec import SCHEMA
from ....text.units import sentence_case
from ..result import describe_share_waited
from .facts import Facts, Noted, Today
from .spec import OwnRaceSpec
from .variants import BY_NAME, OF_MEMORY_ONLY, Variant

GOAL = "faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRaceResult(RaceFound):
    """The answer, with the headline that follows from it.

    Where data is waited for, loader workers raced alone first: `at_workers` is the verdict of `rounds_of_workers`, and
    `base` are the workers where they gain. `at_rest` is the verdict of `rounds`, in which the others raced on top of
    the base; None where they did not. `verdict` is the one that decides, and `chosen` what is recommended by it.
    `chosen_memory_bytes` and `chosen_numbers` are those of all chosen variants together. `facts`, what the hook noted
    of today's training, and the rounds hold everything from which others can decide again.
    """

    device: DeviceFacts
    environment: dict[str, Any]
    today: Today
    facts: Noted
    rows: tuple[VariantRow, ...]
    at_workers: RaceVerdict | None
    base: Entry
    at_rest: RaceVerdict | None
    verdict: RaceVerdict
    chosen: Entry
    chosen_memory_bytes: int | None
    chosen_numbers: Numbers | None
    savings: Savings
    lines: tuple[str, ...]
    rounds_of_workers: tuple[RacedRound, ...]
    rounds: tuple[RacedRound, ...]
    others_cores: float | None
    remarks: tuple[str, ...]
    is_time_up: bool | None = None
    total_seconds: float
    starts: int
    spec: OwnRaceSpec

    changes: ClassVar[Mapping[str, Variant]] = BY_NAME

    @property
    def deciding(self) -> RaceVerdict:
        return self.verdict

    @property
    def parts_raced(self) -> Sequence[tuple[RaceVerdict | None, Sequence[RacedRound]]]:
        return (self.at_workers, self.rounds_of_workers), (self.verdict, self.rounds)

    @property
    def today_bytes(self) -> int:
        return self.today.memory_bytes

    @property
    def stated_batch_size(self) -> int | None:
        return self.today.stated_batch_size

    @property
    def line_count(self) -> int:
        return len(self.lines)

    @property
    def why_nothing(self) -> str:
        is_any_raced = any(len(each.entry) == 1 for r in self.all_rounds for each in r.timed)
        if not is_any_raced and self.verdict.claim is SpeedClaim.NO_GAIN:
            return NONE_RACED
        return NOT_TOGETHER if self.verdict.is_found else ""

    @property
    def savers(self) -> list[VariantRow]:
        return memory_savers(self.rows, self.chosen, self.today.memory_bytes, of_memory_only=OF_MEMORY_ONLY)

    @property
    def sentences(self) -> list[str]:
        today, said = self.today, list[str]()
        if today.is_limited_by_loader and today.waiting_fraction is not None:
            said.append(describe_share_waited(today.waiting_fraction, today.stated_batch_size, self.device.kind))
        if self.chosen and self.chosen_memory_bytes is not None:
            said.append(describe_memory(self.chosen_memory_bytes, today.memory_bytes))
        said += [less_memory(row, today.memory_bytes) for row in self.savers[0 if self.chosen else 1 :]]
        return [*said, *(f"{sentence_case(each)}." for each in self.remarks)]

    @property
    def known_facts(self) -> Facts:
        return Facts(self.facts, self.today, self.device.kind, self.device.compute_capability)

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict()}
        return {"schema": SCHEMA, "goal": GOAL, **asdict(self), **whole, "headline": self.headline}
