"""PURE: an answer as it leads a page and the end of the command line: one short sentence, and notes that follow it."""

from __future__ import annotations

from dataclasses import dataclass

WORDS_MOST = 17
"""Words of the leading sentence: more are not read in five seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence in three parts, so that a page can colour the recommended size, if there is one, and its notes."""

    before: str
    batch_size: int | None = None
    after: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.before}{'' if self.batch_size is None else f'{self.batch_size:,}'}{self.after}"

    @property
    def text(self) -> str:
        return " ".join([self.sentence, *self.notes])


def is_short(sentence: str) -> bool:
    return len(sentence.split()) <= WORDS_MOST
