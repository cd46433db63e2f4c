"""PURE: the report on a model of which not even one sample fits: the memory it needed, and suggestions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..catalog import Workload
from ..optimizers import OPTIMIZERS
from ..result import DeviceFacts, Outcome, Probe, Purpose
from ..units import format_bytes

_REQUEST = re.compile(r"[Tt]ried to allocate (\d[\d.]* (?:bytes|[KMGT]iB))")
_LOADING, _OPTIMIZER_STEP = "loading the model", "optimizer_step"
_WHERE = {
    "forward": " in the forward pass",
    "backward": " in the backward pass",
    _OPTIMIZER_STEP: " in the optimizer step",
    _LOADING: " while the model was loaded",
}


def refusing_probe(probes: Iterable[Probe], batch_size: int | None) -> Probe | None:
    """Return the probe that refused this size: the one in a fresh process where there are two."""
    refused = [probe for probe in probes if probe.batch_size == batch_size and probe.outcome is not Outcome.FITS]
    return max(refused, key=lambda probe: (probe.fresh_process, probe.purpose is Purpose.CONFIRM), default=None)


def describe_need(refusal: Probe | None, limit_bytes: int) -> str | None:
    """Say how much memory was needed and available, as far as known; None where nothing is known.

    The CPU's budget lets the step end, and so knows its peak: a lower bound, for a later step may take more. An
    allocator that refuses knows its last request, and what it had reserved before.
    """
    if refusal is None or refusal.outcome is not Outcome.OUT_OF_MEMORY:
        return None
    where = _WHERE.get(refusal.failed_phase or "", "")
    size, available = refusal.batch_size, f"{format_bytes(limit_bytes)} were available"
    if refusal.error_type == "BudgetExceeded" and refusal.peak_allocated_bytes is not None:
        return f"Batch {size} needed at least {format_bytes(refusal.peak_allocated_bytes)}{where}; {available}."
    request = _REQUEST.search(refusal.error_message or "")
    if request is None:
        return None
    reached = f" after {format_bytes(refusal.memory_bytes)}" if refusal.memory_bytes is not None else ""
    return f"Batch {size} requested another {request[1]}{reached}{where}; {available}."


def suggestions(
    refusal: Probe | None, workload: Workload | None, device: DeviceFacts, *, optimizer: str, is_checkpointed: bool
) -> list[str]:
    """Return what may make it fit, by what held the memory: activations only where they were part of the peak."""
    phase = None if refusal is None else refusal.failed_phase
    less_state = _less_state(optimizer) if phase != _LOADING else []
    tries = [_more_memory(device)]
    if phase == _OPTIMIZER_STEP:  # activations are gone by then
        return tries + less_state
    if workload is None or phase == _LOADING:
        return tries
    if workload.has_gradient_checkpointing and not is_checkpointed:
        tries.append("Gradient checkpointing: stores fewer activations, but each step computes more.")
    tries.append(f"A smaller {workload.input_field.replace('_', ' ')}.")
    return tries + less_state


def _less_state(optimizer: str) -> list[str]:
    chosen = OPTIMIZERS.get(optimizer)
    if chosen is None or chosen.state_copies < 1:
        return []
    copies = "an extra copy" if chosen.state_copies == 1 else "two extra copies"
    return [f"An optimizer with less state: {chosen.label} keeps {copies} of the parameters."]


def _more_memory(device: DeviceFacts) -> str:
    allowed_bytes = device.limit_bytes or device.capacity_bytes
    if allowed_bytes < device.capacity_bytes:
        of = f"{format_bytes(allowed_bytes)} of the device's {format_bytes(device.capacity_bytes)}"
        return f"A higher memory limit: this run was limited to {of}."
    return f"A device with more memory: this one has {format_bytes(device.capacity_bytes)}."
