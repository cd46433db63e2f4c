"""The fixed memory costs of a card of this host, measured by the engine in a child process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence

from django.conf import settings

from analysis.models import Device
from analysis.workers.engine_env import engine_environment
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
    name, environment = device.device, engine_environment(os.environ) | inherited_by_child(keep_open)
    if device.uuid and device.compute_capability:  # NVIDIA: chosen by UUID
        name, environment = "cuda:0", environment | {"CUDA_VISIBLE_DEVICES": device.uuid}
    try:
        answer = subprocess.run(
            [*(command or settings.ENGINE_COMMAND), "calibrate", name, "--json"],
            capture_output=True,
            text=True,
            timeout=_CALIBRATE_SECONDS,
            start_new_session=True,
            env=environment,
            pass_fds=keep_open,
            cwd=settings.BASE_DIR,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise DeviceUnavailable(f"the device could not be calibrated: {exc}") from exc
    if answer.returncode != 0:
        reason = answer.stderr.strip()[-2000:] or "no reason was given"
        raise EngineError(f"the device could not be calibrated: {reason}")
    try:
        return Calibration.from_dict(json.loads(answer.stdout))
    except (AttributeError, TypeError, ValueError) as exc:
        raise EngineError(f"the engine's calibration cannot be read: {exc!r}") from exc
