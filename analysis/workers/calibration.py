"""The fixed memory costs of a card of this host, measured by the engine in a child process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from analysis.models import Device
from analysis.workers.engine_env import ask_engine
from engine.errors import DeviceUnavailable, EngineError
from engine.estimate.calibration import Calibration
from engine.machine.device_lock import inherited_by_child

_CALIBRATE_SECONDS = 300


def calibration_measure(
    device: Device, keep_open: Sequence[int] = (), command: Sequence[str] | None = None
) -> Calibration:
    """Have the engine calibrate this card. Raises EngineError with the engine's message.

    The caller holds the card's lock: `keep_open` is its descriptor, which the engine inherits.
    """
    name, environment = device.device, inherited_by_child(keep_open)
    if device.uuid and device.compute_capability:  # NVIDIA: chosen by UUID
        name, environment = "cuda:0", environment | {"CUDA_VISIBLE_DEVICES": device.uuid}
    how: dict[str, Any] = {"command": command, "environment": environment, "keep_open": keep_open}
    try:
        answer = ask_engine("calibrate", name, seconds=_CALIBRATE_SECONDS, **how)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise DeviceUnavailable(f"the device could not be calibrated: {exc}") from exc
    if answer.returncode != 0:
        reason = answer.stderr.strip()[-2000:] or "no reason was given"
        raise EngineError(f"the device could not be calibrated: {reason}")
    try:
        return Calibration.from_dict(json.loads(answer.stdout))
    except (AttributeError, TypeError, ValueError) as exc:
        raise EngineError(f"the engine's calibration cannot be read: {exc!r}") from exc
