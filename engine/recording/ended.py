"""PURE: why a recorded training ended: by the text of its error, its exit status, and the steps before."""

from __future__ import annotations

import signal
from dataclasses import replace
from math import prod

from ..deaths.cause import Death, cause_on_a_device
from ..deaths.moments import LATE_STEPS, Moment
from ..deaths.signs import Cause
from .growth import Growth
from .recording import Recording

INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT)
GREW_FRACTION, LONGER = 0.1, 1.05
"""Growth explains a death where it took this share of what is held, a batch where it is that much larger."""
_OF_A_STEP = (Moment.STEP, Moment.TRAINING, Moment.UNKNOWN)
_UNEXPLAINED = (Cause.TOO_LARGE, Cause.LATE, Cause.CANNOT_TELL)


def was_stopped(status: int) -> bool:
    """Whether its own user stopped the command: there is nothing to explain."""
    return status in INTERRUPTED


def death_of(recording: Recording, growth: Growth | None = None, host_growth: Growth | None = None) -> Death | None:
    """Return why a command ended early. A training on a CPU has no `host_growth` beside its `growth`."""
    death, process, device = _death(recording), recording.process, recording.device
    if death is None or process is None or device is None:
        return death
    is_of_the_host = death.cause is Cause.HOST_MEMORY
    if is_of_the_host and device.kind == "cpu" and death.moment is not Moment.UNKNOWN:
        death = replace(death, cause=_cause_on_a_cpu(death, process.steps))
    if death.moment not in _OF_A_STEP:
        return death
    is_unexplained = death.is_of_a_device and death.cause in _UNEXPLAINED
    is_beside_a_card = is_of_the_host and device.kind != "cpu"
    if not is_of_the_host and not is_unexplained:
        return death
    samples = process.host_samples if is_beside_a_card else process.samples
    least_bytes = GREW_FRACTION * max((each[2] for each in samples), default=0)
    piled_up = None if is_beside_a_card else process.piled_up  # which were counted on the training's device
    has_piled_up = piled_up is not None and piled_up.bytes >= least_bytes
    if has_piled_up or _grew(host_growth if is_beside_a_card else growth, least_bytes):
        return replace(death, cause=Cause.GROWS)
    is_long = prod(process.batches.latest) > LONGER * prod(process.batches.longest_before)
    if is_long and process.batches.longest_before and not is_beside_a_card:
        return replace(death, cause=Cause.LONG_BATCH)
    return death


def _cause_on_a_cpu(death: Death, steps: int) -> Cause:
    """Return what took the memory of a training whose device is the host itself."""
    if death.moment is Moment.TRAINING and steps < LATE_STEPS:
        return Cause.TOO_LARGE
    cause = cause_on_a_device(death.figures, death.moment, steps)
    return Cause.HOST_MEMORY if cause is Cause.CANNOT_TELL else cause


def _grew(growth: Growth | None, least_bytes: float) -> bool:
    return growth is not None and growth.bytes_per_step * growth.last_step >= least_bytes


def _death(recording: Recording) -> Death | None:
    status, process = recording.status, recording.process
    if status == 0 or was_stopped(status):
        return None
    if process is not None and process.death is not None:
        return process.death
    if status == -signal.SIGKILL and recording.oom_kills > 0:
        return Death(Cause.HOST_MEMORY, line="the kernel's out-of-memory killer ended a process meanwhile")
    if process is not None and process.refused_allocations:
        return Death(Cause.CANNOT_TELL, line="the card refused memory, and the script ended by itself after it")
    return Death(Cause.CANNOT_TELL, line=f"it ended with {status_text(status)}")


def status_text(status: int) -> str:
    names = {-each: each.name for each in signal.Signals}
    return names.get(status, f"signal {-status}") if status < 0 else f"exit status {status}"
