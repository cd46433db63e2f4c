"""PURE: whether a run of letters and digits is random, as a key is, or made of words, as a name is.

With letters of both cases and digits the kind alternates too often. With one case it does so in names, too
(`bs16lr3e4wd1e2`): there the pairs of letters tell, of which words and the abbreviations of trainings use few.
Hexadecimal digits count as no random text: only their place tells a key from a commit.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_CHANGES, _BITS = 0.4, 3.6
_LEAST_CHANGES, _LEAST_PAIRS, _ODD_PAIRS = 3, 4, 0.45
_HEX = re.compile(r"(?:0x|g)?[0-9a-fA-F]+")  # `g` of git describe
_GROUPS = re.compile(r"[a-z]{3,}")
_SECOND_LETTERS = (
    "abcdgilmnprstuy baeflsu caefhiklot dabdeilopsu eacdefilmnpqrstx faeiop gbcehiprs habeiot iacdefglmnorstvz kbe "
    "laeilorstuy mabeilop nacdefgilostuv obcdklmnoprstuvw paeiloprtuxy quw racdegimnorst sadehiopstux tacefhioprstuy "
    "uaelmnprst vaeilq wadiv xlmpt ze"
)
"""Each first letter with those that follow it in nine of ten pairs of documented Python, and in abbreviations."""
_COMMON = frozenset(group[0] + second for group in _SECOND_LETTERS.split() for second in group[1:])


def is_random(text: str) -> bool:
    """Whether letters and digits, at least 20 of them, look random."""
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" for each in text]
    changes = sum(a != b for a, b in zip(kinds, kinds[1:], strict=False))
    if "d" not in kinds or _HEX.fullmatch(text):
        return False
    if len(set(kinds)) == len("dul"):
        return changes >= _CHANGES * (len(text) - 1) and _bits(text) >= _BITS
    return changes >= _LEAST_CHANGES and _has_odd_pairs(text.lower())


def _bits(text: str) -> float:
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


def _has_odd_pairs(text: str) -> bool:
    """Whether the letters, where three or more stand together, follow each other as in no word."""
    pairs = [group[at : at + 2] for group in _GROUPS.findall(text) for at in range(len(group) - 1)]
    return len(pairs) >= _LEAST_PAIRS and sum(pair not in _COMMON for pair in pairs) >= _ODD_PAIRS * len(pairs)
