"""PURE: the findings of a race, of a model's settings or of a script, as its result tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ..facts.intervals import Interval
from ..facts.result import Savings
from ..facts.savings import savings
from ..facts.speed_rounds import SpeedClaim
from .field import TODAY, Entry, RacedRound, RaceVerdict
from .row import VariantRow
from .text import (
    NO_GAIN,
    NONE_RACED,
    NOT_TOGETHER,
    describe_basis,
    describe_gain,
    describe_saving,
    headline,
    less_memory,
    nothing_found,
    share_saved,
)

_IN_SHORT = {NO_GAIN: "nothing found", NONE_RACED: "nothing to race", NOT_TOGETHER: "nothing recommended"}


class RaceFound(Protocol):
    """What follows from the verdicts of a race, and from the changes that save memory."""

    __slots__ = ()
    changes: ClassVar[Mapping[str, Any]]
    """All changes that there are, by their names; each has a label."""
    savings: Savings
    chosen: Entry

    @property
    def deciding(self) -> RaceVerdict: ...
    @property
    def parts_raced(self) -> Sequence[tuple[RaceVerdict | None, Sequence[RacedRound]]]:
        """The verdict and the rounds of both parts of the race; None for a part that was not raced."""

    @property
    def line_count(self) -> int:
        """How many lines make what is recommended."""

    @property
    def why_nothing(self) -> str:
        """Why nothing is recommended for speed, where it is not what the verdicts say; empty where it is."""

    @property
    def today_bytes(self) -> int | None: ...
    @property
    def stated_batch_size(self) -> int | None:
        """Today's batch size; None where the watched start may not show it."""

    @property
    def is_found(self) -> bool:
        return self.chosen != TODAY or self.own_size is not None

    @property
    def recommended(self) -> tuple[str, ...]:
        return tuple(self.changes[name].label for name in self.chosen)

    @property
    def parts(self) -> tuple[str, ...]:
        """The recommended changes, and "batch 64" where another batch size is recommended too."""
        return (*self.recommended, *(() if self.own_size is None else (f"batch {self.own_size:,}",)))

    @property
    def headline(self) -> str:
        return self.headline_with(self.savings)

    def headline_with(self, savings: Savings | None) -> str:
        if self.is_found:
            return headline(self.deciding, lines=self.line_count, label=" + ".join(self.parts), savings=savings)
        why = self.why_nothing or nothing_found([verdict for verdict, _ in self.parts_raced if verdict is not None])
        return " ".join([*(less_memory(row, self.today_bytes or 0) for row in self.savers[:1]), why])

    @property
    def all_rounds(self) -> tuple[RacedRound, ...]:
        return tuple(each for _, rounds in self.parts_raced for each in rounds)

    @property
    def timed_rounds(self) -> int:
        return sum(each.failed is None for each in self.all_rounds)

    def check_names(self, named: Iterable[str]) -> None:
        """Raise ValueError for a change that is gone."""
        if unknown := {*self.chosen, *named} - self.changes.keys():
            raise ValueError(f"there is no change {min(unknown)!r}")

    @property
    def savers(self) -> Sequence[VariantRow]:
        """What is offered for less memory, beside what is recommended for speed."""
        return ()

    @property
    def own_size(self) -> int | None:
        """The recommended batch size; None where today's is kept."""
        return None

    @property
    def found_gain(self) -> Interval | None:
        return self.deciding.gain if self.is_found else None

    @property
    def basis(self) -> str:
        return describe_basis(self.savings)

    @property
    def factor(self) -> str:
        """Write "1.90x [1.81, 2.02] as fast", as the headline does; empty where nothing is recommended."""
        found = self.deciding
        return describe_gain(found.claim, found.gain, found.rounds) if self.is_found else ""

    @property
    def in_short(self) -> str:
        """Write the factor, else "44.4 % less memory", else what the headline says of why nothing is recommended."""
        if self.factor:
            return self.factor
        if self.savers and self.today_bytes:
            return f"{share_saved(self.savers[0], self.today_bytes)} less memory"
        return next((short for said, short in _IN_SHORT.items() if said in self.headline), "nothing claimed")

    @property
    def size_of_today(self) -> str:
        """Write "batch 16", or "the script's own batch size" where the seen one may not be today's."""
        size = self.stated_batch_size
        return "the script’s own batch size" if size is None else f"batch {size:,}"

    @property
    def is_answered(self) -> bool:
        """Whether anything is recommended, for speed or for less memory."""
        return bool(self.factor or self.savers)

    def headline_assuming(self, money: Savings) -> str:
        """Write the headline with the saving under the assumptions of `money`, and with those; not under its own."""
        headline, gain = self.headline_with(None), self.found_gain
        if gain is None:
            return headline
        again = savings(money, gain, is_bound=self.deciding.claim is SpeedClaim.AT_LEAST)
        saved = describe_saving(again)
        return f"{headline} It saves {saved} a year. {describe_basis(again)}" if saved else headline

    def memory_change(self, memory_bytes: int | None) -> float | None:
        """Return how much more memory a row takes than today's training, as a share of that; None where not known."""
        if memory_bytes is None or not self.today_bytes:
            return None
        return memory_bytes / self.today_bytes - 1
