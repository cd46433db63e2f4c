"""Progress of a run and of a probe. Reports at intervals distinguish a slow probe from one that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_SECONDS = 1.0

FORWARD, BACKWARD, OPTIMIZER_STEP = "forward", "backward", "optimizer_step"
TRAINING_PHASES = (FORWARD, BACKWARD, OPTIMIZER_STEP)
"""The phases of a training step, by the names that probes, traces and results give them."""

_PHASES = {
    "estimating": ("estimating first, so that the search starts near the limit", "Estimate"),
    "preparing": ("importing libraries and building the model", "Prepare"),
    "searching": ("searching for the largest batch size", "Search"),
    "soaking": ("running the largest batch size for more steps in a fresh process", "Soak run"),
    "curve": ("measuring smaller batch sizes", "Smaller sizes"),
    "timing": ("comparing speeds", "Speeds"),
    "explaining": ("finding out what fills the memory", "What fills it"),
    "memory": ("measuring memory and time of the steps that are compared", "Memory and time"),
    "compiling": ("compiling the training step", "Compile"),
    "gradients": ("comparing gradients", "Gradients"),
    "numbers": ("training today's settings twice, to see how far their losses repeat", "Numbers"),
    "racing": ("racing the changes at today's batch size", "Race"),
    "sizing": ("searching the batch sizes of today's settings and of the fastest", "Batch sizes"),
    "racing_sizes": ("racing them at their own batch sizes", "Race of sizes"),
    "training": ("training, as it is", "Training"),
    "tracing": ("tracing training steps on tensors without data: no device is used", "Trace"),
    "predicting": ("predicting memory for each GPU", "Predict"),
}
PHASE_LABELS = {phase: label for phase, (label, _) in _PHASES.items()} | {"finished": "finished"}
"""The phases of a run and of an estimate, as text for logs and pages."""
PHASE_NAMES = {phase: name for phase, (_, name) in _PHASES.items()}
"""The phases in one or two words, for lists of steps."""

MEASURING_PHASES = ("estimating", "preparing", "searching", "soaking", "curve", "timing", "explaining")
CHECKING_PHASES = ("preparing", "soaking", "explaining")
TIMING_PHASES = ("preparing", "timing", "explaining")
TUNING_PHASES = ("searching", "curve")
COMPARING_PHASES = (*TUNING_PHASES, "timing")
ESTIMATING_PHASES = ("tracing", "predicting")
"""The phases, in order, of: a search, a check of one size, a comparison of speeds only, a command without a comparison
of speeds, a command with one, an estimate."""
RACING_PHASES = ("preparing", "numbers", "racing", "sizing", "racing_sizes")
"""The phases of a race."""
RACING_OWN_PHASES = ("memory", "timing")
"""The phases of a race of a command."""
WATCHING_PHASES = ("training",)
"""The phase of a training that is watched."""
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
"""The field of `Timings` for each phase that has one."""

Progress = Callable[[str, int], None]
"""Called when a step begins, with its stage ("memory", "timing", "kinds" or "attribution") and its number from 1 on."""


def no_progress(stage: str, step: int) -> None:
    """Ignore the progress."""


class Paced:
    """Reports at most one step a second, and none in the first second, so that short probes report nothing."""

    def __init__(self, report: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._silent_until = clock() + INTERVAL_SECONDS

    def __call__(self, stage: str, step: int) -> None:
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + INTERVAL_SECONDS
            self._report(stage, step)
