"""The search over all documents: a section must hold the beginning of every word. Twenty files need no index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from analysis.pages.help.documents import HelpDocument, documents
from analysis.pages.help.markdown import TextSection

MAX_CHARACTERS, MAX_WORDS, MAX_RESULTS = 200, 8, 20
_BEFORE, _AFTER = 80, 160
"""Characters of the excerpt before and after what was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """A section that holds all words, and its text around the best place."""

    document: HelpDocument
    section: TextSection
    before: str
    match: str
    after: str
    rank: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a search found: the best sections, and how many there are in all."""

    question: str
    results: tuple[Found, ...]
    count: int
    problem: str = ""


def search(question: str) -> SearchAnswer:
    """Find the sections that hold every word, whatever its case: first those whose heading does."""
    words = question.split()
    if len(question) > MAX_CHARACTERS or len(words) > MAX_WORDS:
        problem = f"Search for at most {MAX_WORDS} words and {MAX_CHARACTERS} characters."
        return SearchAnswer(question[:MAX_CHARACTERS], (), 0, problem)
    patterns = [_beginning(word) for word in words]
    phrase = _beginning(*words)
    sections = ((document, section) for document in documents().values() for section in document.page.sections)
    found = [hit for each in sections if patterns and (hit := _match(*each, patterns, phrase))]
    found.sort(key=lambda hit: hit.rank, reverse=True)
    return SearchAnswer(question, tuple(found[:MAX_RESULTS]), len(found))


def _beginning(*words: str) -> re.Pattern[str]:
    """Match where these words begin, one after the other: "size" finds "sizes" and `batch_size`, "fit" no "benefit"."""
    return re.compile(r"(?<![^\W_])" + r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)


def _match(
    document: HelpDocument, section: TextSection, patterns: list[re.Pattern[str]], phrase: re.Pattern[str]
) -> Found | None:
    whole = f"{section.title} {section.text}"
    if not all(pattern.search(whole) for pattern in patterns):
        return None
    in_heading = sum(bool(pattern.search(section.title)) for pattern in patterns)
    rank = (in_heading, len(phrase.findall(whole)), sum(len(pattern.findall(section.text)) for pattern in patterns))
    return Found(document, section, *_excerpt(section, patterns, phrase), rank=rank)


def _excerpt(section: TextSection, patterns: list[re.Pattern[str]], phrase: re.Pattern[str]) -> tuple[str, str, str]:
    """Cut out the text around the phrase, else around the longest word found: before it, itself, and after it.

    Code is shown only where no sentence holds a word: out of its lines it reads badly.
    """
    in_prose = any(pattern.search(section.prose) for pattern in patterns)
    text = section.prose if in_prose or not any(pattern.search(section.text) for pattern in patterns) else section.text
    by_length = sorted(patterns, key=lambda pattern: len(pattern.pattern), reverse=True)
    hit = next((hit for pattern in (phrase, *by_length) if (hit := pattern.search(text))), None)
    first, last = hit.span() if hit else (0, 0)
    start, end = max(first - _BEFORE, 0), last + _AFTER
    before = text[start:first].partition(" ")[2] if start else text[:first]  # no half of a word
    after = text[last:end].rpartition(" ")[0] if end < len(text) else text[last:]
    return f"{'… ' if start else ''}{before}", text[first:last], f"{after}{' …' if end < len(text) else ''}"
