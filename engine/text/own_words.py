"""PURE: the error of a training in a sentence, with a marker before what its script said."""

from __future__ import annotations

import re

SAID = "the script's own words: "
"""The marker before the message of an exception that a script raised."""
IN_ITS_WORDS = ", in "
"""Between the type of the exception and the marker."""

_NAME = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)


def error_name(name: str | None) -> str:
    """Return the name of an error's class, as a sentence may hold it, else "an error"."""
    return name if name and _NAME.fullmatch(name) else "an error"


def describe_error(error_type: str | None, message: str | None) -> str:
    """Write "ValueError, in the script's own words: no rows", or "Exit: the command ended with status 2"."""
    return f"{error_type}{IN_ITS_WORDS if (message or '').startswith(SAID) else ': '}{message}"
