"""`python -m engine devices` and `python -m engine models`: what can be measured, and on what."""

from __future__ import annotations

import sys
from typing import Any

from ..catalog import WORKLOADS
from ..errors import SpecError
from .output import print_json


def main(arguments: list[str]) -> int:
    """Print one line for each device or model; the exit status."""
    what, *options = arguments
    if options not in ([], ["--json"]):
        sys.stderr.write(f"error: {what} takes --json and nothing else\n")
        return SpecError.exit_status
    rows = _devices() if what == "devices" else _models()
    if options:
        print_json(rows)
    else:
        for row in rows:
            print("  ".join(f"{value}" for value in row.values() if value not in (None, [], False)))
    return 0


def _devices() -> list[dict[str, Any]]:
    from ..measurement import device  # imports torch

    return [facts.to_dict() for facts in device.listed()]


def _models() -> list[dict[str, Any]]:
    return [
        {"id": w.id, "name": w.name, "task": w.task, "parameters": w.parameter_count, "description": w.description}
        for w in WORKLOADS.values()
    ]
