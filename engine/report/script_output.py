"""PURE: removes what a script printed from everything that is sent, unless sending it was requested.

An error may quote the last lines of a script, after a marker. They may contain anything: paths, data, logs.
"""

from __future__ import annotations

from typing import Any

MARK = "; its last lines: "
"""The marker between an error and the lines; all text after it comes from the script."""


def without_output(content: Any, host: str) -> Any:
    """Return JSON in which each text that quotes a script names instead the host that has the output."""
    if isinstance(content, str):
        own, mark, _ = content.partition(MARK)
        return f"{own}; its output stayed on {host}" if mark else content
    if isinstance(content, dict):
        return {name: without_output(part, host) for name, part in content.items()}
    return [without_output(part, host) for part in content] if isinstance(content, list | tuple) else content
