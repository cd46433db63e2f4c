"""PURE: what today's batch size is called in every sentence: "your 32", or "batch size 16", which may be assumed."""

from __future__ import annotations

DEFAULT_BATCH_SIZE = 16
"""Assumed as today's size where nobody names one. A spec does not hold which it was: the words for it fit both."""


def name_today(batch_size: int) -> str:
    """Write "your 32", and "batch size 16" for the size that may be assumed."""
    return f"batch size {batch_size:,}" if batch_size == DEFAULT_BATCH_SIZE else f"your {batch_size:,}"
