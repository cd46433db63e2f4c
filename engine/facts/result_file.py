"""A result in a file of its own, written whole or not at all. What is read may come from anybody: see `result_in`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ..errors import SpecError

_OF_A_PORTAL = frozenset({"origin", "reported_from", "is_trusted"})
"""Members that a portal adds to a result it serves: facts of the portal's run, not of the result."""


class Document(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def write_result(path: Path, exit_status: int, result: Document, *, mode: int = 0o666) -> None:
    write_content(path, {"exit_status": exit_status, "result": result.to_dict()}, mode=mode)


def write_content(path: Path, content: Mapping[str, Any], *, mode: int = 0o666) -> None:
    """Write, force to the disk, rename, force the rename to the disk. Raises OSError. The umask applies to `mode`."""
    partial = Path(f"{path}.partial")
    with open(partial, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(json.dumps(content))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_document(path: str, field: str) -> Any:
    """Read JSON from a file, or from standard input for `-`. Raises SpecError for the field."""
    try:
        return json.loads(sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8"))
    except OSError as exc:
        raise SpecError(field, f"{path} cannot be read: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise SpecError(field, f"{path} is not valid JSON: {exc}") from exc


def result_in(document: object, field: str) -> dict[str, Any]:
    """Return the result that a result file or a run of the portal holds, or the result alone. Raises SpecError."""
    content = document.get("result", document) if isinstance(document, dict) else document
    if not isinstance(content, dict):
        raise SpecError(field, "holds no result: it must be a JSON object")
    return {name: value for name, value in content.items() if name not in _OF_A_PORTAL}
