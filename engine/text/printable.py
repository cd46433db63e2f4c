"""PURE: makes text from untrusted sources safe to show in a terminal, a log or an error message.

A portal, a script's output, a file or the name in a document may hold characters that move the cursor, change the
window's title, or reverse the writing direction. Code that prints such text passes it through here.
"""

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
