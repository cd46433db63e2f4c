"""PURE: lines that a library writes to the error output, and that say nothing about a run."""

from __future__ import annotations

_TRACE_POINTS = "USDT:"
"""torch's profiler says with this that it registered a trace point."""


def is_noise(line: str) -> bool:
    """Whether a line of error output is left out of logs and messages: an empty one, or a remark of the profiler."""
    return not line.strip() or line.startswith(_TRACE_POINTS)
