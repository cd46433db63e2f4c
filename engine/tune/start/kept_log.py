"""Keeps the output of a start that failed where its user can read it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

LOG_NAME = "failed-start.log"


def kept_log(log: Path) -> Path | None:
    """Copy the output of a failed start to where it stays until the next one fails; None where it cannot be."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memorymark"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = folder / f"{LOG_NAME}.{os.getpid()}"
        try:
            with (
                open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy,
                log.open("rb") as output,
            ):
                shutil.copyfileobj(output, copy)
            return partial.replace(folder / LOG_NAME)
        finally:
            partial.unlink(missing_ok=True)  # where the disk was full
    return None
