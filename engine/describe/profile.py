"""PURE: a profile in words: the settings of a library, and where they were read."""

from __future__ import annotations

from ..settings.profiles import find
from ..spec import SETTINGS


def describe_like(profile: str) -> str:
    """Write "hf-trainer: optimizer adamw-fused, ... (transformers 5.23.0, training_args.py)", then what differs."""
    known = find(profile)
    settings = ", ".join(SETTINGS[name].describe(value) for name, value in known.settings.items())
    chunks = f", loss in {known.loss_chunks} chunks" if known.loss_chunks else ""
    return f"{profile}: {settings}{chunks} ({known.origin}). {known.note}".strip()


def profile_lines(like: str) -> list[str]:
    return [f"Settings of {describe_like(like)}"] if like else []
