"""PURE: the settings of a spec as they are typed, the command that measures it elsewhere, and a profile in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ..program import INSTALLED
from ..settings.profiles import find
from ..settings.spec import DEFAULTS, SETTINGS
from ..settings.spec_checks import is_of_bytes
from ..text.units import exact_bytes

_LEFT_OUT = frozenset({"model", "device", "time_budget_seconds", "like", "communication_bytes"})
"""Written elsewhere, of an estimate alone, or not of one: it has no time budget. A profile's settings are written."""


def measure_command(spec: Mapping[str, Any], program: str = INSTALLED) -> str:
    """Write "memorymark measure bert --precision bf16", without defaults; empty for a config, which is in a file."""
    if spec.get("config"):
        return ""
    options = setting_options(spec, (name for name in SETTINGS if name not in _LEFT_OUT))
    return f"{program} measure {shlex.join([str(spec['model']), *options])}"


def setting_options(spec: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the options of these settings that differ from their defaults."""
    return [part for name in names for part in _option(name, spec.get(name))]


def _option(name: str, value: object) -> list[str]:
    if value is None or value == DEFAULTS.get(name):
        return []
    option = SETTINGS[name].option or f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    if is_of_bytes(name):
        return [option, exact_bytes(int(str(value)))]
    return [option, f"{value:g}" if isinstance(value, float) else str(value)]


def describe_like(profile: str) -> str:
    """Write "hf-trainer: optimizer adamw-fused, ... (transformers 5.23.0, training_args.py)", then what differs."""
    known = find(profile)
    settings = ", ".join(SETTINGS[name].describe(value) for name, value in known.settings.items())
    chunks = f", loss in {known.loss_chunks} chunks" if known.loss_chunks else ""
    return f"{profile}: {settings}{chunks} ({known.origin}). {known.note}".strip()


def profile_lines(like: str) -> list[str]:
    return [f"Settings of {describe_like(like)}"] if like else []
