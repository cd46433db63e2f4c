"""How an estimate is run: what its engine is told, how long it may take, and what follows when its process died.

It holds no device, so no lock tells who works on it: its owner's process does, and the lease for other hosts.
"""

from __future__ import annotations

import json
import os
import time

from django.conf import settings

from analysis.models import Run
from analysis.runs import services
from analysis.runs.retry_policy import Cause
from analysis.workers.attempt_files import result_file
from analysis.workers.calibration import calibrations

_LOOK_SECONDS = 0.05


def owner_of_this_process() -> str:
    """Who claims an estimate: `lab-1:4711`, host and process."""
    return f"{settings.HOST_NAME}:{os.getpid()}"


def estimate_arguments(run: Run) -> list[str]:
    """What follows `python -m engine`: the spec, the card, and what was measured of such cards here."""
    arguments = ["estimate", "--spec", json.dumps(run.spec, separators=(",", ":")), "--gpu", run.gpu, "--events"]
    for calibration in calibrations(run.gpu):
        path = result_file(run).with_name(f"calibration-{calibration['gpu_id']}.json")
        path.write_text(json.dumps(calibration))
        arguments += ["--calibration", str(path)]
    return arguments


def estimates_recover(*, wait_seconds: float = 0.0) -> int:
    """End the attempts of this host whose process is gone, waiting so long for those that live; how many were ended."""
    until, ended = time.monotonic() + wait_seconds, 0
    while True:
        running = list(Run.objects.estimating().running().filter(owner__startswith=f"{settings.HOST_NAME}:"))
        ended += sum(_give_up(run) for run in running if not _lives(run.owner))
        if time.monotonic() >= until or all(not _lives(run.owner) for run in running):
            return ended
        time.sleep(_LOOK_SECONDS)


def _give_up(run: Run) -> bool:
    message = f"The worker {run.owner} died before the estimate was there."
    return services.run_fail(run_id=run.pk, token=run.token, code=Cause.OWNER_DIED, message=message)


def _lives(owner: str) -> bool:
    """Whether the process has not ended; one of another user counts as alive, and the lease decides."""
    try:
        os.kill(int(owner.rpartition(":")[2]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True
