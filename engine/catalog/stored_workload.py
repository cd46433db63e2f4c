"""PURE: what a stored run trained: an entry of the catalogue, or the model of its own config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SpecError
from . import WORKLOADS, Workload
from .from_config import read_config


def stored_workload(spec: Mapping[str, Any]) -> Workload | None:
    """Return the workload of a stored spec; None for a model, or a kind of config, that is no longer offered."""
    if (config := spec.get("config")) is None:
        return WORKLOADS.get(spec.get("model", ""))
    try:
        return read_config(config, spec.get("task")).workload(spec.get("config_parameters"))
    except SpecError:
        return None
