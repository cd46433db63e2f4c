"""Temporary folders that do not outlive their process for long, however it ends. Does not load torch.

A process that is killed removes nothing. So each folder is locked by the process that made it, and the
process that makes the next one on this machine removes those that no process holds any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a folder cannot be locked: one that is left stays
    fcntl = None  # type: ignore[assignment]

PREFIX = "memorymark-scratch-"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make an empty folder for the time of the context. Removes those of processes that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _remove_if_free(left)
    path, descriptor = _locked_folder()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _locked_folder() -> tuple[str, int | None]:
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        if fcntl is None:
            return path, None
        with suppress(FileNotFoundError):  # another process may find it before it is locked, and remove it
            if (descriptor := _lock(path)) is not None:
                if os.path.exists(path):
                    return path, descriptor
                os.close(descriptor)


def _remove_if_free(path: Path) -> None:
    if fcntl is None:
        return
    with suppress(OSError):  # gone meanwhile, or of another user
        if (descriptor := _lock(str(path))) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)


def _lock(path: str) -> int | None:
    """Return a descriptor of the folder that holds its lock; None where another process holds it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
