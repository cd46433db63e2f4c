"""PURE: the commands that race or time a script whose batch sizes were searched, as typed where the script is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ....describe.commands import setting_options
from ....program import INSTALLED
from ..spec import CONFIG, FUNCTION, TEMPLATE, WAYS_BY_NAME
from ..start.several_hosts import several_hosts


def faster_command(spec: Mapping[str, Any]) -> str:
    """Write "memorymark tune --faster --current-batch-size 4 -- python train.py {batch_size}"; empty where none races.

    A config file keeps its own batch size in a race. Emulated ranks would need devices of their own there.
    """
    size = [] if spec.get("batch") == CONFIG else ["--current-batch-size", str(spec.get("current_batch_size"))]
    return _of_script(spec, ["--faster"], size)


def again_command(spec: Mapping[str, Any], report_to: str) -> str:
    """Write "memorymark tune --device cpu -- python train.py {batch_size}"; empty without a command of one host."""
    device = [] if spec["device"] == "auto" else ["--device", str(spec["device"])]
    names = ("current_batch_size", "memory_limit_bytes", "max_batch_size")
    file = ["--batch-in", str(spec["batch_in"])] if spec.get("batch_in") else []
    report = ["--report-to", report_to] if report_to else []
    return _of_script(spec, report, [*device, *setting_options(spec, names), *file])


def _of_script(spec: Mapping[str, Any], first: list[str], options: list[str]) -> str:
    command, way = spec.get("command"), spec.get("batch", TEMPLATE)
    is_elsewhere = spec.get("emulate_ranks") or (command and several_hosts(command))
    if not command or spec.get("catalogue") or way == FUNCTION or is_elsewhere:
        return ""
    by_name = ["--batch", way] if way in WAYS_BY_NAME else []
    return f"{INSTALLED} tune {shlex.join([*first, *by_name, *options, '--', *command])}"
