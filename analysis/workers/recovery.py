"""Recovery of a dead worker's runs: a finished result is stored; other runs go back into the queue or end."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from django.conf import settings

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.queue.retry_policy import Cause
from analysis.workers.attempt_files import NOT_STORABLE, attempt_folder_remove, folder_remove, left_result

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05


def device_recover(device: Device) -> int:
    """End the attempts still marked running here; returns how many.

    The caller holds the device's lock, so no process works on it, nor on the other devices of its run.
    """
    left = list(Run.objects.holding().on(device))
    for run in left:
        if not _take_result(run):
            logger.warning("run %s: the owner of attempt %s died", run.pk, run.attempt)
            _fail(run)
        attempt_folder_remove(run)
    return len(left)


def _take_result(run: Run) -> bool:
    if (left := left_result(run)) is None:
        return False
    result, exit_status = left
    logger.warning("run %s: storing the result that attempt %s had finished", run.pk, run.attempt)
    try:
        services.run_finish(run_id=run.pk, token=run.token, result=result, exit_status=exit_status)
    except NOT_STORABLE as exc:
        logger.warning("run %s: the result that its dead attempt left cannot be stored: %r", run.pk, exc)
        return False
    return True


def _fail(run: Run) -> bool:
    message = f"The worker {run.owner} died before the run ended."
    return services.run_fail(run_id=run.pk, token=run.token, code=Cause.OWNER_DIED, message=message)


def folders_tidy() -> None:
    """Remove the folders of attempts that are over: their results are no longer needed."""
    folders = list((Path(settings.DATA_DIR) / "runs").glob("*/*"))
    # queried after the folders were listed: a claim is older than its folder
    tokens = set(Run.objects.running().values_list("token", flat=True))
    for folder in folders:
        if folder.name not in tokens:
            folder_remove(folder)


def owner_of_this_process() -> str:
    """Return the owner that claims an estimate: host and process, such as `lab-1:4711`."""
    return f"{settings.HOST_NAME}:{os.getpid()}"


def estimates_recover(*, wait_seconds: float = 0.0) -> int:
    """End the estimates of this host whose process is gone, waiting `wait_seconds` for it; returns how many.

    No lock shows an estimate under way: on this host its owner's process does, and for other hosts the lease.
    """
    until, ended = time.monotonic() + wait_seconds, 0
    while True:
        running = list(Run.objects.estimating().running().filter(owner__startswith=f"{settings.HOST_NAME}:"))
        for run in running:
            if not _lives(run.owner):
                ended += _fail(run)
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
