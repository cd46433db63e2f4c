"""PURE: the command that races a script whose batch sizes were searched, as it is typed where the script is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ...program import INSTALLED
from ..several_hosts import several_hosts
from ..spec import CONFIG, FUNCTION, TEMPLATE, WAYS_BY_NAME


def faster_command(spec: Mapping[str, Any]) -> str:
    """Write "memorymark tune --faster --current-batch-size 4 -- python train.py {batch_size}"; empty where none races.

    A config file keeps its own batch size in a race, as --batch-in is of a search. Ranks that one device stood in for
    would need devices of their own there.
    """
    command, way = spec.get("command"), spec.get("batch", TEMPLATE)
    is_elsewhere = spec.get("emulate_ranks") or (command and several_hosts(command))
    if not command or spec.get("catalogue") or way == FUNCTION or is_elsewhere:
        return ""
    by_name = ["--batch", way] if way in WAYS_BY_NAME else []
    size = [] if way == CONFIG else ["--current-batch-size", str(spec["current_batch_size"])]
    return f"{INSTALLED} tune --faster {shlex.join([*by_name, *size, '--', *command])}"
