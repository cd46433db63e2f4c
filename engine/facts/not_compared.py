"""PURE: why a result says nothing of speeds. Where two sizes were compared, it holds them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from ..text.today import name_today
from .intervals import ENOUGH_ROUNDS


class NotCompared(StrEnum):
    """Why no speeds were compared: what a document holds, and the sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        member = str.__new__(cls, code)
        member._value_, member.sentence = code, sentence
        return member

    RUN_ENDED = "run_ended", "the run ended before the speeds were compared"
    ONE_SIZE = "one_size", "one batch size was checked, and no speeds compared"
    TIME_ENDED = "time_ended", "the time budget ended before the speeds were compared"
    STOPPED = "stopped", "the run was stopped before the speeds were compared"
    TIMING_FAILED = "timing_failed", "the timing failed: the log says why"
    GROWS = "grows", "what its steps or its evaluation leave behind adds up"
    LEFT_OUT = "left_out", "the speeds were not compared, as requested"
    NONE_TIMED = "none_timed", "no size could be timed: the log says why"
    STARTS_APART = (
        "starts_apart",
        "each size was timed in a start of its own: speeds of separate starts are not compared",
    )
    EMULATED = (
        "emulated",
        "one device stands in for each rank alone: their exchange takes no time here, so no speed is stated",
    )
    TODAY_NOT_MEASURED = "today_not_measured", "{today} was not measured here: no speed to compare with"
    NONE_TO_COMPARE = (
        "none_to_compare",
        "no larger size than {today} keeps the reserve, and no smaller one was clearly faster in its start",
    )
    TOO_FEW = "too_few", "too few sizes keep the reserve: nothing to compare"
    TOO_LONG = (
        "too_long",
        f"{2 * ENOUGH_ROUNDS} more starts, the fewest that tell, would take longer than a comparison may",
    )

    @property
    def is_shown_by_starts(self) -> bool:
        """Whether the starts of a training show this reason, so that it is decided again."""
        return self in (self.TODAY_NOT_MEASURED, self.NONE_TO_COMPARE, self.TOO_FEW, self.TOO_LONG)

    def describe(self, today: int) -> str:
        return self.sentence.format(today=name_today(today))

    @classmethod
    def said_by(cls, sentence: str | None, today: int) -> NotCompared | None:
        """Return what a document of an earlier build says in a sentence alone."""
        return next((why for why in cls if why.describe(today) == sentence), None)
