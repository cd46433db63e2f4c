"""PURE: the command that trains a model of the catalogue on several ranks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import resolve_name
from typing import Any

from ...settings.setting import Role
from ...settings.spec import DEFAULTS, SETTINGS, RunSpec

OWN_PYTHON = "{python}"
"""A command that begins with it runs in the Python that MemoryMark itself runs in."""
_MODULE = resolve_name("...measurement.ranked_training", __package__)


def trained_on_ranks(spec: RunSpec) -> dict[str, Any]:
    """Return the settings that each rank trains: the model, and what is not as by default."""
    of_training = {name for name, each in SETTINGS.items() if each.role in (Role.TRAINING, Role.WORKLOAD)}
    given = {name: value for name, value in spec.to_dict().items() if value != DEFAULTS.get(name)}
    return {"model": spec.model, **{name: value for name, value in given.items() if name in of_training}}


def ranked_command(trained: Mapping[str, Any], batch_size: str) -> tuple[str, ...]:
    launcher = (OWN_PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={trained['ranks']}")
    return (*launcher, "-m", _MODULE, json.dumps(trained, separators=(",", ":")), batch_size)


def name_of(trained: Mapping[str, Any]) -> str:
    """Return what such a training is called: "bert-tiny, ddp on 2 ranks"."""
    return f"{trained['model']}, {trained['strategy']} on {trained['ranks']} ranks"
