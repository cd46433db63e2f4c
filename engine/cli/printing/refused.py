"""The last lines of a run whose size was refused: the command that estimates the smallest fitting change."""

from __future__ import annotations

import shlex

from ...describe.commands import setting_options
from ...estimate import gpus
from ...facts.result import DeviceFacts, Reason, RunResult
from ...program import PROGRAM
from ...settings.setting import Role
from ...settings.spec import SETTINGS, RunSpec
from ...settings.workload_settings import OF_CONFIG
from ...text.units import exact_bytes

_OF_THE_TRAINING = [
    name
    for name, each in SETTINGS.items()
    if each.role in (Role.TRAINING, Role.WORKLOAD) and name not in ("model", *OF_CONFIG)
]


def change_lines_after(result: RunResult) -> list[str]:
    """Return the line with the command; empty for a command's run, or where memory refused no requested size."""
    spec = result.spec
    size = refused_size(result)
    place = place_options(result.device)
    if size is None or place is None or not isinstance(spec, RunSpec):
        return []
    # a spec holds the config itself, but not its file
    model = [spec.model] if spec.config is None else ["--config", "FILE", "--task", str(spec.task)]
    whose = "" if spec.config is None else " (FILE is your config.json)"
    options = [
        *place,
        *setting_options(spec.to_dict(), _OF_THE_TRAINING),
        "--batch-size",
        str(size),
        "--what-to-change",
    ]
    return [f"What to change so that batch {size} fits{whose}: {PROGRAM} {shlex.join(['estimate', *model, *options])}"]


def refused_size(result: RunResult) -> int | None:
    """Return the size to check, or today's, if memory refused it; else None."""
    boundary, spec = result.boundary, result.spec
    if spec.check_batch_size is not None:
        return spec.check_batch_size if result.fits is False and boundary.reason is Reason.ONE_SIZE else None
    is_found = boundary.certified or boundary.reason is Reason.DOES_NOT_FIT
    is_below = (boundary.largest_batch_size or 0) < spec.current_batch_size
    is_memory = boundary.reason in (Reason.OUT_OF_MEMORY, Reason.DOES_NOT_FIT)
    return spec.current_batch_size if is_found and is_below and is_memory else None


def place_options(device: DeviceFacts) -> list[str] | None:
    """Return the options of `estimate` for this device and its limit; None where it cannot be estimated."""
    limit = device.limit_bytes
    if device.kind == "cpu":
        return ["--gpu", "cpu", *(["--memory-limit", exact_bytes(limit)] if limit else [])]
    if device.kind != "cuda":
        return None
    card = gpus.match(device.name, device.capacity_bytes)
    place = ["--gpu", card.id] if card else ["--memory", str(device.capacity_bytes)]
    return [*place, *(["--memory-limit", exact_bytes(limit)] if limit and limit < device.capacity_bytes else [])]
