"""Recovery of a dead worker's runs: a finished result is stored; other runs go back into the queue or end."""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.queue.retry_policy import Cause
from analysis.workers.attempt_files import NOT_STORABLE, attempt_folder_remove, left_result

logger = logging.getLogger(__name__)


def device_recover(device: Device) -> int:
    """End the attempts still marked running here; returns how many.

    The caller holds the device's lock, so no other process works on it: no need to wait for a lease to run out. A run
    of several devices has them all locked while one of its processes lives: one that is free says that all are dead.
    """
    left = list(Run.objects.holding().on(device))
    for run in left:
        if not _take_result(run):
            logger.warning("run %s: the owner of attempt %s died", run.pk, run.attempt)
            message = f"The worker {run.owner} died before the run ended."
            services.run_fail(run_id=run.pk, token=run.token, code=Cause.OWNER_DIED, message=message)
        attempt_folder_remove(run)
    return len(left)


def _take_result(run: Run) -> bool:
    left = left_result(run)
    if left is None:
        return False
    logger.warning("run %s: storing the result that attempt %s had finished", run.pk, run.attempt)
    try:
        services.run_finish(run_id=run.pk, token=run.token, result=left.result, exit_status=left.exit_status)
    except NOT_STORABLE as exc:
        logger.warning("run %s: the result that its dead attempt left cannot be stored: %r", run.pk, exc)
        return False
    return True


def folders_tidy() -> None:
    """Remove the folders of attempts that are over: their results are no longer needed."""
    folders = list((Path(settings.DATA_DIR) / "runs").glob("*/*"))
    # queried after the folders were listed: a claim is older than its folder
    tokens = set(Run.objects.running().values_list("token", flat=True))
    for folder in folders:
        if folder.name not in tokens:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other attempts of the run may lie there
                folder.parent.rmdir()
