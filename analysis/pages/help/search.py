"""The search over all documents, for the sections with most of the words. Twenty files need no index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.pages.help.documents import HelpDocument, documents
from analysis.pages.help.markdown import TextSection

MAX_CHARACTERS, MAX_WORDS, MAX_RESULTS = 200, 8, 20
_BEFORE, _AFTER = 80, 160
"""Characters of the excerpt before and after what was found."""
_SYNONYMS = {
    "multi gpu": ("several gpus", "ranks"),
    "multiple gpus": ("several gpus", "ranks"),
    "sso": ("single sign-on",),
    "forgot password": ("changepassword",),
    "lost password": ("changepassword",),
    "back up": ("backup",),
    "update": ("upgrade",),
    "emulated": ("--emulate-ranks",),
    "oom": ("out of memory",),
    "login": ("sign in", "sign-on"),
    "limit a user": ("quota",),
    "limit a person": ("quota",),
    "cost": ("price",),
    "add user": ("createsuperuser", "users"),
    "add a user": ("createsuperuser", "users"),
}
"""What people ask for, and the documents' words for it."""
_SMALL = {"a", "an", "and", "can", "do", "for", "how", "i", "in", "is", "it", "my", "of", "on", "the", "to", "what"}


@dataclass(frozen=True, slots=True)
class Found:
    document: HelpDocument
    section: TextSection
    before: str
    match: str
    after: str
    held: int
    rank: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    question: str
    results: tuple[Found, ...]
    count: int
    problem: str = ""


def search(question: str) -> SearchAnswer:
    """Find the sections with most of the words, whatever their case; a word in the heading counts first."""
    words = question.replace("-", " ").split()
    if len(question) > MAX_CHARACTERS or len(words) > MAX_WORDS:
        problem = f"Search for at most {MAX_WORDS} words and {MAX_CHARACTERS} characters."
        return SearchAnswer(question[:MAX_CHARACTERS], (), 0, problem)
    patterns = [_beginning(term, *_SYNONYMS.get(term, ())) for term in _terms(words)]
    phrase = _beginning(" ".join(words))
    sections = ((document, section) for document in documents().values() for section in document.page.sections)
    found = [hit for each in sections if patterns and (hit := _match(*each, patterns, phrase))]
    found.sort(key=lambda hit: hit.rank, reverse=True)
    most = max((hit.held for hit in found), default=0)
    best = [hit for hit in found if hit.rank[0] >= most]
    return SearchAnswer(question, tuple(best[:MAX_RESULTS]), len(best))


def pages_named(question: str, pages: Mapping[str, str]) -> dict[str, str]:
    """Return those of `pages`, addresses by name, whose name holds a word of the question or what it stands for."""
    patterns = [_beginning(term, *_SYNONYMS.get(term, ())) for term in _terms(question.split()[:MAX_WORDS])]
    return {name: url for name, url in pages.items() if any(pattern.search(name) for pattern in patterns)}


def _terms(words: list[str]) -> list[str]:
    """Join the words that are an entry of the synonyms: "back", "up" -> "back up". Small words count only alone."""
    text = f" {' '.join(words).casefold()} "
    known = [term for term in _SYNONYMS if f" {term} " in text]
    for term in known:
        text = text.replace(f" {term} ", "  ")
    rest = text.split()
    return [*known, *([word for word in rest if word not in _SMALL] or ([] if known else rest))]


def _beginning(*terms: str) -> re.Pattern[str]:
    """Match where one of these begins: "size" finds "sizes" and `batch_size`, "fit" no "benefit"."""
    each = (r"[\s-]+".join(map(re.escape, term.split())) for term in terms)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(each)})", re.IGNORECASE)


def _match(
    document: HelpDocument, section: TextSection, patterns: list[re.Pattern[str]], phrase: re.Pattern[str]
) -> Found | None:
    whole = f"{section.title} {section.text}"
    held = sum(bool(pattern.search(whole)) for pattern in patterns)
    if not held:
        return None
    in_heading = sum(bool(pattern.search(section.title)) for pattern in patterns)
    count = sum(len(pattern.findall(section.text)) for pattern in patterns)
    rank = (held + in_heading, in_heading, len(phrase.findall(whole)), count)
    return Found(document, section, *_excerpt(section, patterns, phrase), held=held, rank=rank)


def _excerpt(section: TextSection, patterns: list[re.Pattern[str]], phrase: re.Pattern[str]) -> tuple[str, str, str]:
    """Cut out the text around the phrase, or else the longest word found; return it with what is before and after.

    Code is shown only where no sentence holds a word.
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
