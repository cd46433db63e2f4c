"""What every start adds to its process: the hook with its settings, the batch size, the device, no tracker."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ....errors import DeviceUnavailable
from ....machine import host
from ..spec import VARIABLE, FunctionSpec, TuneSpec
from .launch import Place, Watching

HOOK = Path(__file__).resolve().parents[1] / "hook"
GROUP_FILE = Path(__file__).resolve().parents[3] / "settings" / "ranks" / "emulated_group.py"
HOOK_VARIABLE = "MEMORYMARK_HOOK"
TRACKERS_OFF = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "DISABLED",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",
}
"""Turns experiment trackers off: nobody wants to find a start of a search among their experiments."""


def hook_settings(
    spec: TuneSpec | FunctionSpec, batch_size: int, watching: Watching, place: Place, threads: int | None = None
) -> dict[str, Any]:
    """Return what the hook must know. `threads`: how many a fork may compute with, where not as many as it likes."""
    return {
        "folder": str(place.notes),
        "batch": spec.batch,
        "batch_size": batch_size,
        "limit_bytes": spec.memory_limit_bytes,
        "room_for_gpu_bytes": host.room_for_gpu_bytes(),
        "threads": threads,
        **asdict(watching),
        **({"emulated": {**asdict(watching.emulated), "group_file": str(GROUP_FILE)}} if watching.emulated else {}),
    }


def python_path(*first: str) -> str:
    """Return PYTHONPATH with these folders before those that it has."""
    return os.pathsep.join((*first, *filter(None, [os.environ.get("PYTHONPATH")])))


def environment_of(device: str, batch_size: int) -> dict[str, str]:
    trackers = {name: value for name, value in TRACKERS_OFF.items() if name not in os.environ}
    devices = visible_devices(device, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return {**trackers, VARIABLE: str(batch_size), **devices}


def visible_devices(device: str, visible: str | None) -> dict[str, str]:
    """Return the environment that shows a command its device alone, of those in `visible`; `auto` shows all."""
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    if kind != "cuda" or not index:
        return {}
    names = visible.split(",") if visible else []
    if names and int(index) >= len(names):
        raise DeviceUnavailable(f"{device} is not there: CUDA_VISIBLE_DEVICES has {len(names)}")
    return {"CUDA_VISIBLE_DEVICES": names[int(index)].strip() if names else index}
