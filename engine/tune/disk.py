"""Finds what a command wrote where it was started: each start runs it from its beginning, and may write again."""

from __future__ import annotations

import os
from pathlib import Path

from ..report.files import FOLDER
from ..text.printable import printable

MOST_LOOKED_AT = 20_000
MOST_FILES, MOST_PATH = 200, 1_000
"""How many files a result names, and how many characters of a path."""
_DATABASE = "memorymark"  # memorymark.sqlite3, and SQLite's files beside it
_LEFT_OUT = {".git", "__pycache__", ".venv", "venv", "node_modules", FOLDER}


def changed_files(folder: Path, since: float, run_key: str | None = None) -> tuple[str, ...]:
    """Return the files below `folder` that were written after the epoch second `since`, among the first 20,000.

    Reports are left out, as no start wrote them: those in MemoryMark's folder, of this run or of another one, and
    wherever this run's lie, those that are named after `run_key`. So is the database of a portal that runs there.
    """
    changed, seen = [], 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in names:
            if name.partition(".")[0] in (run_key, _DATABASE):
                continue
            path = Path(where, name)
            try:
                if path.stat().st_mtime >= since:
                    changed.append(printable(path.relative_to(folder), MOST_PATH) or "?")
            except OSError:  # gone meanwhile, or not to be read
                continue
        seen += len(names)
        if seen > MOST_LOOKED_AT:
            break
    return tuple(sorted(changed))
