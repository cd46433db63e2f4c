"""PURE: the workload of a stored run: an entry of the catalogue, or the model of its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import SpecError
from . import WORKLOADS, Workload
from .from_config import read_config


def is_own_training(spec: Mapping[str, Any]) -> bool:
    return "command" in spec or "function" in spec


def stored_workload(spec: Mapping[str, Any]) -> Workload | None:
    """Return the workload of a stored spec; None for a command or function, and for what is no longer offered."""
    if is_own_training(spec):  # its name may be that of a model
        return None
    if (config := spec.get("config")) is None:
        return WORKLOADS.get(spec.get("model", ""))
    try:
        return read_config(config, spec.get("task")).workload(spec.get("config_parameters"))
    except SpecError:
        return None
