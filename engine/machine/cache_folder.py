"""The folder in an account's cache that holds what is kept between commands."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "memorymark"


def remove_the_oldest(files: Iterable[Path], most_files: int, most_bytes: float = math.inf) -> None:
    """Remove what is beyond these numbers of files and bytes, the one that was changed longest ago first."""
    with suppress(OSError):  # another process may remove the same ones
        found = sorted(((path, path.stat()) for path in files), key=lambda each: each[1].st_mtime, reverse=True)
        held_bytes = 0
        for number, (path, each) in enumerate(found):
            held_bytes += each.st_size
            if number >= most_files or held_bytes > most_bytes:
                path.unlink(missing_ok=True)
