"""PURE: what `tune --faster` found: a row for each variant, the verdicts of its races, and their document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...race.field import Entry, RacedRound, RaceVerdict
from ...race.found import RaceFound
from ...race.numbers import Numbers
from ...race.row import VariantRow
from ...race.text import (
    NONE_RACED,
    NOT_TOGETHER,
    describe_memory,
    headline,
    less_memory,
    memory_savers,
    nothing_found,
)
from ...results.result import DeviceFacts, Savings
from ...results.speed_rounds import SpeedClaim
from ...spec import SCHEMA
from ...text.units import sentence_case
from ..training import LOADER_LIMITS_FROM, describe_share_waited
from .facts import Facts, Noted
from .spec import OwnRaceSpec
from .variants import OF_MEMORY_ONLY

GOAL = "faster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Today's training. `loss_noise` is the largest relative difference between the losses of two starts of it.

    `mask_noise` is that of a start to one in which a GPU drew other numbers for dropout; None: none are drawn there.

    Where the batch size is guessed, no text states it.
    """

    batch_size: int
    samples_per_step: int
    ranks: int
    memory_bytes: int
    step_seconds: float
    waiting_fraction: float | None
    loss_noise: float | None
    cores: int
    is_batch_size_guessed: bool = False
    mask_noise: float | None = None

    @property
    def stated_batch_size(self) -> int | None:
        return None if self.is_batch_size_guessed else self.batch_size

    @property
    def is_limited_by_loader(self) -> bool:
        return (self.waiting_fraction or 0.0) >= LOADER_LIMITS_FROM


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
    total_seconds: float
    starts: int
    spec: OwnRaceSpec

    @property
    def deciding(self) -> RaceVerdict:
        return self.verdict

    @property
    def today_bytes(self) -> int:
        return self.today.memory_bytes

    @property
    def stated_batch_size(self) -> int | None:
        return self.today.stated_batch_size

    @property
    def is_found(self) -> bool:
        return bool(self.chosen)

    @property
    def all_rounds(self) -> tuple[RacedRound, ...]:
        return (*self.rounds_of_workers, *self.rounds)

    @property
    def raced(self) -> int:
        return len({name for r in self.all_rounds for each in r.timed if len(each.entry) == 1 for name in each.entry})

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
        """What the variants are chosen by. Raises ValueError where the compute capability of the device is none."""
        today = self.today
        return Facts.of(
            self.facts,
            self.device,
            cores=today.cores,
            ranks=today.ranks,
            peak_bytes=today.memory_bytes,
            waiting_fraction=today.waiting_fraction,
            mask_noise=today.mask_noise,
        )

    def headline_with(self, savings: Savings | None) -> str:
        found = nothing_found([each for each in (self.at_workers, self.verdict) if each is not None])
        if not self.chosen and self.verdict.is_found:
            found = NOT_TOGETHER
        if not self.raced and self.verdict.claim is SpeedClaim.NO_GAIN:
            found = NONE_RACED
        if self.chosen:
            label = " + ".join(row.label for row in self.rows if row.name in self.chosen)
            found = headline(self.verdict, lines=len(self.lines), label=label, savings=savings)
        savers = [] if self.chosen else self.savers
        return " ".join([*(less_memory(row, self.today.memory_bytes) for row in savers[:1]), found])

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict()}
        return {"schema": SCHEMA, "goal": GOAL, **asdict(self), **whole, "headline": self.headline}
