"""PURE: lines that a library writes to the error output, and that say nothing about a run."""

from __future__ import annotations

import re

_TRACE_POINTS = "USDT:"
"""torch's profiler begins its lines about registered trace points, its start and its stop so."""
_BEFORE_THE_PROFILER = re.compile(r"\[W[^]]*\] Memory block of unknown size was allocated before the profiling started")


def is_noise(line: str) -> bool:
    """Whether a line of error output is left out of logs and messages: an empty one, or a remark of the profiler."""
    return not line.strip() or line.startswith(_TRACE_POINTS) or _BEFORE_THE_PROFILER.match(line) is not None
