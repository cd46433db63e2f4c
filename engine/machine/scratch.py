"""Makes temporary folders that are removed soon after their process ends, even if it is killed. Does not load torch.

A killed process removes nothing. So each folder is locked by its maker, and the maker of the next folder on this
machine removes those that no process holds any more.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import NoScratch

try:
    import fcntl
except ImportError:  # Windows, where a folder cannot be locked: a leftover one stays
    fcntl = None  # type: ignore[assignment]

PREFIX = "memorymark-scratch-"
ROOM_BYTES = 1 << 20
# any user may put a pipe or a link with such a name there: do not wait for the one, nor follow the other
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make an empty folder for the context, and remove those of killed processes. Raises NoScratch if unwritable."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # already removed, or owned by another user
            if fcntl is not None and (free := _lock(str(left))) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(free)
    path, descriptor = _locked_folder()
    try:
        _check_room(Path(path))
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _check_room(folder: Path) -> None:
    try:
        (folder / "room").write_bytes(bytes(ROOM_BYTES))
    except OSError as exc:
        way_out = "raise `ulimit -f`" if exc.errno == errno.EFBIG else "set TMPDIR to a folder with room"
        raise NoScratch(f"{folder.parent} takes no file of 1 MiB: {exc.strerror}; {way_out}") from exc
    (folder / "room").unlink()


def _locked_folder() -> tuple[str, int | None]:
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        if fcntl is None:
            return path, None
        with suppress(FileNotFoundError):  # another process may remove it before it is locked
            if (descriptor := _lock(path)) is not None:
                if os.path.exists(path):
                    return path, descriptor
                os.close(descriptor)


def _lock(path: str) -> int | None:
    """Lock the folder; None if another process or user holds it. Raises OSError for anything but a folder."""
    descriptor = os.open(path, _OPEN)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            os.close(descriptor)
            return None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
