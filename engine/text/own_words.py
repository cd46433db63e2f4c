"""PURE: the error of a training in a sentence, with a marker before what its script said."""

from __future__ import annotations

SAID = "the script's own words: "
"""The marker before the message of an exception that a script raised."""
IN_ITS_WORDS = ", in "
"""Between the type of the exception and the marker."""


def describe_error(error_type: str | None, message: str | None) -> str:
    """Write "ValueError, in the script's own words: no rows", or "Exit: the command ended with status 2"."""
    return f"{error_type}{IN_ITS_WORDS if (message or '').startswith(SAID) else ': '}{message}"
