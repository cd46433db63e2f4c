"""A result in a file of its own, written so that it is there whole or not at all, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol


class Document(Protocol):
    """A result that can be written."""

    def to_dict(self) -> dict[str, Any]: ...


def write_result(path: Path, exit_status: int, result: Document, *, mode: int = 0o666) -> None:
    """Write, force to the disk, rename, force the rename to the disk. Raises OSError when one of them fails.

    `mode` is that of the new file, less the umask.
    """
    partial = Path(f"{path}.partial")
    with open(partial, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(json.dumps({"exit_status": exit_status, "result": result.to_dict()}))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
