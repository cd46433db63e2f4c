"""Where the engine of one attempt leaves its result, in case nobody is there any more to hear it.

`<data folder>/runs/<run>/<token>/result.json`. The token makes it this attempt's own: no other claim, no other
database that used this folder before, ever has the same.
"""

from __future__ import annotations

import json
import logging
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError

from analysis.models import Run
from analysis.runs.result_columns import result_columns

logger = logging.getLogger(__name__)

NOT_STORABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, DataError, IntegrityError)
"""What storing a result raises that is not what an engine of this version says: trying again would not help."""


@dataclass(frozen=True, slots=True)
class LeftResult:
    """What a dead attempt had finished."""

    result: dict[str, Any]
    exit_status: int


def result_file(run: Run) -> Path:
    """Of the attempt that holds the run now. The folder is made; where it cannot be, the engine will say so."""
    folder = _folder(run)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        logger.warning("run %s: no folder for its result: %s", run.pk, exc)
    return folder / "result.json"


def left_result(run: Run) -> LeftResult | None:
    """The result that is there and whole; a torn or foreign one is told and not used."""
    try:
        content = json.loads((_folder(run) / "result.json").read_text())
        left = LeftResult(dict(content["result"]), int(content["exit_status"]))
        result_columns(left.result)
    except FileNotFoundError:
        return None
    except (OSError, *NOT_STORABLE) as exc:
        logger.warning("run %s: the result of its dead attempt cannot be used: %r", run.pk, exc)
        return None
    return left


def attempt_folder_remove(run: Run) -> None:
    """Once the attempt's end is stored, or given up."""
    folder = _folder(run)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # other attempts of the run may lie there
        folder.parent.rmdir()


def _folder(run: Run) -> Path:
    return Path(settings.DATA_DIR) / "runs" / str(run.pk) / run.token
