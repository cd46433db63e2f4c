"""PURE: the search terms of a text, as they are stored and as they are searched."""

from __future__ import annotations

import re
import unicodedata

from analysis.models.annotations import WORD_LENGTH

WORDS_PER_RUN = 220
"""Search finds only this many different terms of a long note."""

_WORD = re.compile(r"[^\W_]+")


def search_terms(text: str) -> list[str]:
    """Split text into lower-case terms without accents, each once: "Café run_7" -> cafe, run, 7."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return list(dict.fromkeys(word[:WORD_LENGTH] for word in _WORD.findall(letters)))


def stored_words(*texts: str) -> str:
    return " ".join(search_terms(" ".join(texts))[:WORDS_PER_RUN])
