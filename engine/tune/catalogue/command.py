"""PURE: the command that trains a model of the catalogue on several ranks, and what such a command trains."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...errors import SpecError
from ...settings.setting import Role
from ...spec import DEFAULTS, SETTINGS, RunSpec

OWN_PYTHON = "{python}"
"""A command that begins with it runs in the Python that MemoryMark itself runs in."""
_MODULE = f"{__package__.partition('.tune.')[0]}.measurement.ranked_training"
_ANY_MODULE = re.compile(r"(memorymark\.)?engine\.measurement\.ranked_training")
_FIRST = (OWN_PYTHON, "-m", "torch.distributed.run", "--standalone")
_KEPT = frozenset({Role.TRAINING, Role.WORKLOAD})


def ranked_command(spec: RunSpec, batch_size: str) -> tuple[str, ...]:
    trained = {name: value for name, value in spec.to_dict().items() if _is_of_training(name, value)}
    settings = json.dumps({"model": spec.model, **trained}, separators=(",", ":"))
    return (*_FIRST, f"--nproc-per-node={spec.ranks}", "-m", _MODULE, settings, batch_size)


def _is_of_training(name: str, value: Any) -> bool:
    return name in SETTINGS and SETTINGS[name].role in _KEPT and value != DEFAULTS.get(name)


def settings_in(command: Sequence[str]) -> dict[str, Any] | None:
    """Return the settings of the catalogue's model that a command trains; None for a command of somebody's own.

    Raises SpecError where they are none.
    """
    if len(command) != len(_FIRST) + 5 or not _ANY_MODULE.fullmatch(command[-3]):
        return None
    settings: dict[str, Any] | None = None
    with suppress(ValueError, RecursionError):
        settings = json.loads(command[-2])
    spec = RunSpec.from_dict(settings)
    if tuple(command) != (*ranked_command(spec, command[-1])[:-3], *command[-3:]):
        raise SpecError("command", "trains a model of the catalogue in another way than this engine does")
    return settings


def name_of(settings: dict[str, Any]) -> str:
    """Return what such a training is called: "bert-tiny, ddp on 2 ranks"."""
    return f"{settings['model']}, {settings['strategy']} on {settings['ranks']} ranks"
