"""The command that measures a spec on another machine, for a portal that has no such device."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from engine.spec import DEFAULTS, SETTINGS
from engine.text.units import GIB, MIB

_LEFT_OUT = frozenset({"model", "device", "time_budget_seconds"})
"""Written elsewhere, or not of an estimate: it has no time budget of its own."""


def measure_command(spec: Mapping[str, Any]) -> str:
    """Write "memorymark measure bert --precision bf16"; empty where the model comes from a file that is not here.

    Only what differs from the defaults is written, so that the line stays readable.
    """
    if spec.get("config"):
        return ""
    options = [part for name in SETTINGS if name not in _LEFT_OUT for part in _option(name, spec.get(name))]
    return shlex.join(["memorymark", "measure", str(spec["model"]), *options])


def _option(name: str, value: object) -> list[str]:
    if value is None or value == DEFAULTS.get(name):
        return []
    option = SETTINGS[name].option or f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    if name.endswith("_bytes"):
        return [option, _size(int(str(value)))]
    return [option, f"{value:g}" if isinstance(value, float) else str(value)]


def _size(size_bytes: int) -> str:
    """Write "8GiB" or "512MiB" where it is exact."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{name}"
    return str(size_bytes)
