"""PURE: makes untrusted text safe to print: it may move the cursor, or change a window's title or the direction."""

from __future__ import annotations

LENGTH_MOST = 300


def printable(text: object, most: int = LENGTH_MOST) -> str:
    """Make untrusted text harmless for a terminal: one line of at most `most` characters."""
    return "".join(each if each.isprintable() else " " for each in str(text)[: most + 1])[:most].strip()


def is_line(text: str, most: int = LENGTH_MOST) -> bool:
    """Whether text is one line of 1 to `most` printable characters, and not all of them blank."""
    return bool(text.strip()) and len(text) <= most and text.isprintable()


def printable_lines(text: str) -> str:
    """Make untrusted text of several lines harmless for a terminal; line feeds and tabs stay."""
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)
