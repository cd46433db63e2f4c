"""Keeps the output of a start that failed where its user can read it."""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path

from ....machine.cache_folder import cache_folder, remove_the_oldest

PREFIX, SUFFIX = "failed-start-", ".log"
MOST_KEPT = 50
"""How many runs of an account have their log here; the oldest goes first."""
_BEGAN = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def kept_log(log: Path) -> Path | None:
    """Copy a failed start's output to a file of this process, until its next one; None where that is impossible."""
    folder = cache_folder()
    name = f"{PREFIX}{_BEGAN}-{socket.gethostname()}-{os.getpid()}{SUFFIX}"  # hosts of a cluster share one home
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = folder / f"{name}.part"
        try:
            with (
                open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy,
                log.open("rb") as output,
            ):
                shutil.copyfileobj(output, copy)
            kept = partial.replace(folder / name)
        finally:
            partial.unlink(missing_ok=True)  # where the disk was full
        remove_the_oldest(folder.glob(f"{PREFIX}*{SUFFIX}"), MOST_KEPT)
        return kept
    return None
