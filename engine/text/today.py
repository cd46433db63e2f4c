"""PURE: what today's batch size is called in every sentence: "your 32", or "the default 16" where nobody named it."""

from __future__ import annotations

DEFAULT_BATCH_SIZE = 16
"""Assumed as today's size where nobody names one. A spec does not hold which it was, so nobody is told "your 16"."""


def name_today(batch_size: int) -> str:
    """Write "your 32", and "the default 16" for the size that is assumed."""
    return f"the default {batch_size:,}" if batch_size == DEFAULT_BATCH_SIZE else f"your {batch_size:,}"
