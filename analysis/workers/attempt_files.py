"""The file in which the engine of one attempt leaves its result, in case its supervisor is dead by then.

`<data folder>/runs/<run>/<token>/result.json`. The token makes the file unique to this attempt: no other claim, and
no other database that used this folder before, has the same token.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError

from analysis.models import Run
from engine.facts.not_compared import NotCompared
from engine.questions.documents.stored import MALFORMED
from engine.questions.kinds import KINDS

logger = logging.getLogger(__name__)

NOT_STORABLE = (*MALFORMED, DataError, IntegrityError)
"""Errors of storing a malformed result, such as one of another version of the engine. A retry would not help."""


def result_file(run: Run) -> Path:
    """Return the path of the result of the run's current attempt, and create its folder; a failure is logged."""
    folder = _folder(run)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        logger.warning("run %s: the folder for its result cannot be created: %s", run.pk, exc)
    return folder / "result.json"


def left_result(run: Run) -> tuple[dict[str, Any], int] | None:
    """Read the result, and the exit status, that a dead attempt left; a malformed result is logged and ignored."""
    try:
        content = json.loads((_folder(run) / "result.json").read_text())
        result, exit_status = dict(content["result"]), int(content["exit_status"])
        KINDS[run.kind].read(result)
    except FileNotFoundError:
        return None
    except (OSError, *NOT_STORABLE) as exc:
        logger.warning("run %s: the result of its dead attempt cannot be used: %r", run.pk, exc)
        return None
    return None if is_cut_short(result) else (result, exit_status)


def is_cut_short(result: Mapping[str, Any]) -> bool:
    """Tell whether an engine gave what it knew when it was stopped: here such a run is cancelled, or goes on later."""
    return (result.get("speed") or {}).get("why") == NotCompared.STOPPED


def attempt_folder_remove(run: Run) -> None:
    """Remove the attempt's folder, once its end is stored or given up."""
    folder_remove(_folder(run))


def folder_remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # other attempts of the run may lie there
        folder.parent.rmdir()


def _folder(run: Run) -> Path:
    return Path(settings.DATA_DIR) / "runs" / str(run.pk) / run.token
