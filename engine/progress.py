"""Progress of a run and of a probe. Reports at intervals distinguish a slow probe from one that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_SECONDS = 1.0

PHASE_LABELS = {
    "preparing": "importing libraries and building the model",
    "estimating": "estimating first, so that the search starts near the limit",
    "searching": "searching for the largest batch size",
    "soaking": "running the largest batch size for more steps in a fresh process",
    "curve": "measuring smaller batch sizes",
    "timing": "comparing speeds",
    "explaining": "finding out what fills the memory",
    "memory": "measuring memory and time of the steps that are compared",
    "compiling": "compiling the training step",
    "gradients": "comparing gradients",
    "tracing": "tracing training steps on tensors without data: no device is used",
    "predicting": "predicting memory for each card",
    "finished": "finished",
}
"""The phases of a run and of an estimate, as text for logs and pages."""

PHASE_NAMES = {
    "estimating": "Estimate",
    "preparing": "Prepare",
    "searching": "Search",
    "soaking": "Long run",
    "curve": "Smaller sizes",
    "timing": "Speeds",
    "explaining": "What fills it",
    "memory": "Memory and time",
    "compiling": "Compile",
    "gradients": "Gradients",
    "tracing": "Trace",
    "predicting": "Predict",
}
"""The same in a word or two, as the steps of a list."""

MEASURING_PHASES = ("estimating", "preparing", "searching", "soaking", "curve", "timing", "explaining")
CHECKING_PHASES = ("preparing", "soaking", "explaining")
TIMING_PHASES = ("preparing", "timing", "explaining")
TUNING_PHASES = ("searching", "curve")
COMPARING_PHASES = (*TUNING_PHASES, "timing")
ESTIMATING_PHASES = ("tracing", "predicting")
"""The phases of a search, a check of one size, a comparison of speeds alone, a command without and with a
comparison of speeds, and an estimate, in order."""
VALIDATING_PHASES = {
    "backward": ("preparing", "memory", "gradients"),
    "compile": ("preparing", "memory", "compiling", "gradients"),
}
"""The phases of a validation, by what it checks."""

SECONDS_OF_PHASES = {
    "searching": "search_seconds",
    "soaking": "soak_seconds",
    "curve": "curve_seconds",
    "timing": "timing_seconds",
    "explaining": "explaining_seconds",
}
"""The phases that take their time one after the other, and their fields of `Timings`."""

Progress = Callable[[str, int], None]
"""Called with the stage ("memory", "timing", "kinds" or "attribution") and its step, from 1 on, that begins."""


def no_progress(stage: str, step: int) -> None:
    """Ignore the progress."""


class Paced:
    """Passes on at most one step a second, and none in the first second, so that short probes report nothing."""

    def __init__(self, report: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._silent_until = clock() + INTERVAL_SECONDS

    def __call__(self, stage: str, step: int) -> None:
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + INTERVAL_SECONDS
            self._report(stage, step)
