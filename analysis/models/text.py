"""Text of people and of the engine, as it may be stored and shown.

Control characters end up in terminals, spreadsheets and SVG, which they break; characters that turn the direction of
writing let a name read as another one. What people write with them is refused, so that they see it; what the engine
reports is stored, with a mark in their place.
"""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # all but tab and the two that end a line
_DIRECTION = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_NO_CHARACTER = r"\ud800-\udfff"  # half of a surrogate pair: no encoding can write it
_HARMFUL = re.compile(f"[{_CONTROL}{_DIRECTION}{_NO_CHARACTER}]")
_LINE_END = re.compile(r"[\t\n\r\u2028\u2029]")
MARK = "\ufffd"


def storable_text(text: str, length: int) -> str:
    """Cut to `length` characters, with a mark in place of control characters and what a database refuses."""
    return _HARMFUL.sub(MARK, text[:length])


def storable_json(value: object) -> object:
    """Mark harmful characters in all text within a JSON value, which is not cut."""
    if isinstance(value, str):
        return storable_text(value, len(value))
    if isinstance(value, dict):
        return {storable_json(key): storable_json(part) for key, part in value.items()}
    return [storable_json(part) for part in value] if isinstance(value, list) else value


def plain_text(text: str) -> None:
    """Raise ValidationError for text of several lines that people should not be able to store."""
    if found := _HARMFUL.search(text):
        raise ValidationError(
            f"must not hold control characters or characters that turn the direction of text (U+{ord(found[0]):04X})",
            code="control_character",
        )


def plain_line(text: str) -> None:
    """Raise ValidationError for what must be a single line, such as a name."""
    plain_text(text)
    if _LINE_END.search(text):
        raise ValidationError("must be a single line", code="several_lines")
