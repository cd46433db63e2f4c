"""Who runs an estimate, and recovery after its process died.

An estimate holds no device, so no lock shows whether it is under way: on this host its owner's process does, and for
other hosts the lease.
"""

from __future__ import annotations

import os
import time

from django.conf import settings

from analysis.models import Run
from analysis.runs import services
from analysis.runs.queue.retry_policy import Cause

_LOOK_SECONDS = 0.05


def owner_of_this_process() -> str:
    """Return the owner that claims an estimate: host and process, such as `lab-1:4711`."""
    return f"{settings.HOST_NAME}:{os.getpid()}"


def estimates_recover(*, wait_seconds: float = 0.0) -> int:
    """End the attempts of this host whose process is gone, waiting up to `wait_seconds` for it; returns how many."""
    until, ended = time.monotonic() + wait_seconds, 0
    while True:
        running = list(Run.objects.estimating().running().filter(owner__startswith=f"{settings.HOST_NAME}:"))
        for run in running:
            if not _lives(run.owner):
                message = f"The worker {run.owner} died before the estimate was finished."
                ended += services.run_fail(run_id=run.pk, token=run.token, code=Cause.OWNER_DIED, message=message)
        if time.monotonic() >= until or all(not _lives(run.owner) for run in running):
            return ended
        time.sleep(_LOOK_SECONDS)


def _lives(owner: str) -> bool:
    """Whether the process still exists; one of another user counts as alive, and then the lease decides."""
    try:
        os.kill(int(owner.rpartition(":")[2]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True
