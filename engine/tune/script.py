"""Finds what a command's script was: its file, its bytes and the commit it stands at, to repeat a result by."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def script_facts(command: Sequence[str], directory: str | None = None) -> dict[str, Any]:
    """Return the name, digest and commit of the script of a command that is started in `directory`, as far as known."""
    scripts = (Path(directory or "", part) for part in command if part.endswith((".py", ".sh")))
    script = next((path for path in scripts if path.is_file()), None)
    if script is None:
        return {"script": None, "script_sha256": None, "script_commit": None}
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return {"script": script.name, "script_sha256": digest, "script_commit": _commit(script.resolve().parent)}


def _commit(folder: Path) -> str | None:
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
