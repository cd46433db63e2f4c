"""PURE: what today's batch size is called in every sentence: "your 32", or "the usual 16" where it may be nobody's."""

from __future__ import annotations

import re

USUAL_BATCH_SIZE = 16
"""Assumed as today's size where nobody names one. A spec does not hold which it was, so nobody is told "your 16"."""
_YOUR_USUAL = re.compile(rf"\byour {USUAL_BATCH_SIZE}\b", re.IGNORECASE)


def name_today(batch_size: int) -> str:
    """Write "your 32", and "the usual 16" for the size that is assumed."""
    return f"the usual {batch_size:,}" if batch_size == USUAL_BATCH_SIZE else f"your {batch_size:,}"


def reword(stored: str) -> str:
    """Return a stored sentence with the usual size called that; earlier builds wrote "your 16"."""
    return _YOUR_USUAL.sub(name_today(USUAL_BATCH_SIZE), stored)
