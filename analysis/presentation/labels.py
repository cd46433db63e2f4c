"""Names and phrases that several pages share: the model, its settings, the place it ran, why a search ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from analysis.models import Device, Run, State
from analysis.presentation.formatting import duration, round_bytes
from analysis.runs.gpu_catalog import gpu_name, gpu_total_bytes
from engine.catalog import WORKLOADS
from engine.catalog.from_config import CONFIG
from engine.catalog.stored_workload import stored_workload
from engine.result import Boundary, DeviceFacts, Reason
from engine.spec import CPU_DEFAULT_LIMIT_BYTES, DEFAULTS, SETTINGS, TRAINING_SETTINGS
from engine.training_spec import OPTIMIZER_LABELS, is_own_training
from engine.validation.spec import SHORT_NAMES

_COMMAND_LENGTH = 80
_KINDS = {"cuda": "GPU", "cpu": "CPU"}
_FAMILIES = {
    "cnn": "convolutional networks",
    "transformer": "transformers",
    "mixture_of_experts": "mixtures of experts",
}


def model_name(model: str) -> str:
    """Write "bert" as "BERT base", one of a config as "config cd3dea"; a model no longer offered keeps its id."""
    if model in WORKLOADS:
        return WORKLOADS[model].name
    own = re.fullmatch(rf"{CONFIG}-([0-9a-f]{{6}})[0-9a-f]*", model)
    return f"{CONFIG} {own[1]}" if own else model


def family_name(model: str) -> str:
    """Return the family of models, within which estimates have similar errors."""
    return _FAMILIES[WORKLOADS[model].architecture] if model in WORKLOADS else model


def describe_settings(spec: Mapping[str, Any]) -> list[str]:
    """Name the settings of a run, in short; rarer settings with their default are left out."""
    if is_own_training(spec):
        whole = ["whole run"] if spec.get("whole_run") else []
        function = spec.get("function")
        line = f"function {function}" if function else shlex.join(spec["command"])
        return [line if len(line) <= _COMMAND_LENGTH else f"{line[: _COMMAND_LENGTH - 1]}…", *whole]
    checked = [f"{validation_name(spec)}, batch {spec['batch_size']}"] if "check" in spec else []
    own = stored_workload(spec) if spec.get(CONFIG) else None
    named = [own.name.partition(",")[0]] if own else []
    described = [*named, *checked, spec["precision"], _describe_optimizer(spec["optimizer"]), describe_input(spec)]
    for name in TRAINING_SETTINGS:
        value = spec.get(name, DEFAULTS[name])
        if name not in ("precision", "optimizer") and value != DEFAULTS[name]:
            described.append(SETTINGS[name].describe(value))
    return [text for text in described if text]


def validation_name(spec: Mapping[str, Any]) -> str:
    """Write "backward pass" or "torch.compile"; a check that is no longer offered keeps its name."""
    return SHORT_NAMES.get(spec["check"], str(spec["check"]))


def describe_limit(limit_bytes: int | None) -> str:
    """Write "limited to 256 MiB"; empty without a limit."""
    return f"limited to {round_bytes(limit_bytes)}" if limit_bytes else ""


def settings_of_run(run: Run) -> list[str]:
    """Name the settings of a run and its memory limit: what distinguishes it from others of its model and device."""
    return [*describe_settings(run.spec), *filter(None, [describe_limit(limit_of_run(run))])]


def name_of_run(run: Run) -> str:
    """Write "BERT tiny, limited to 256 MiB"."""
    return ", ".join(filter(None, [model_name(run.model), describe_limit(limit_of_run(run))]))


def limit_of_run(run: Run) -> int | None:
    """Return the memory limit of a run that is below the memory of its device; None without one.

    A CPU has no memory of its own to fill: without a requested limit the engine's default holds.
    """
    if requested := run.spec.get("memory_limit_bytes"):
        return int(requested)
    if run.limit_bytes and run.capacity_bytes:  # it has a result
        return run.limit_bytes if run.limit_bytes < run.capacity_bytes else None
    return CPU_DEFAULT_LIMIT_BYTES if not run.is_estimate and run.requested_kind == "cpu" else None


def describe_input(spec: Mapping[str, Any]) -> str:
    """Write "128 tokens" or "224 px"."""
    workload = stored_workload(spec)
    if workload is None:
        return ""
    size = spec.get(workload.input_field) or workload.default_input_size
    return f"{size} tokens" if workload.is_text else f"{size} px"


def trains(spec: Mapping[str, Any]) -> str:
    """Return the verb of the run: without an optimizer it is not training."""
    return "runs forward and backward" if spec.get("optimizer") == "none" else "trains"


def place(device: DeviceFacts, limit_bytes: int) -> str:
    """Write "On this A100-SXM4-40GB,", with the memory limit of the run if it is below the device's memory."""
    name = "CPU" if device.kind == "cpu" else short_device_name(device.name)
    limit = f" {describe_limit(limit_bytes)}," if limit_bytes < device.capacity_bytes else ""
    return f"On this {name},{limit}"


def short_device_name(name: str) -> str:
    """Write the name without the vendor: "A100-SXM4-40GB"."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")


def run_place(run: Run) -> str:
    """Return a run's device; of a waiting run the requested one, of an estimate its card."""
    if run.is_estimate:
        return short_device_name(gpu_name(run.gpu))
    if device := _device_of(run):
        return short_device_name(device.name)
    return f"any {run.requested_device_class or _KINDS.get(run.requested_kind, run.requested_kind.upper())}"


def run_place_bytes(run: Run) -> int | None:
    """Return the memory of that device; None while any device is possible."""
    if run.is_estimate:
        return gpu_total_bytes(run.gpu)
    device = _device_of(run)
    return device.capacity_bytes if device else None


def why_not_certified(boundary: Boundary, spec: Mapping[str, Any]) -> str | None:
    """Explain why no larger size is known to fail; None where the boundary is certified."""
    if boundary.certified:
        return None
    spent = f"Not certified: the time budget of {duration(spec['time_budget_seconds'])} was spent"
    still_open = "the size had run for longer" if boundary.refused_batch_size else "the limit was found"
    return {
        Reason.TIME_BUDGET: (
            f"{spent} before {still_open}.{'' if boundary.refused_batch_size else ' Larger sizes may fit.'}"
        ),
        Reason.MAX_BATCH_SIZE: (
            f"Not certified: {spec['max_batch_size']:,} was the largest size allowed, and memory did not run out."
        ),
        Reason.ONE_SIZE: "No limit was searched: only the requested size was run.",
        Reason.ERROR: "Not certified: the next size failed twice, and not for lack of memory.",
        Reason.FOREIGN_MEMORY: (
            "Not certified: other processes held memory of the device when the next size was refused. "
            "Run it again when the device is free."
        ),
        Reason.SIZE_LIMIT: (
            "Not certified by memory: larger sizes hit a limit of the library, not of the device, and memory did "
            "not run out."
        ),
    }.get(boundary.reason, "Not certified: the next size was not refused in a fresh process.")


def describe_unsteady(batch_sizes: list[int]) -> str | None:
    """Warn of a speed-up with unsteady timings; None where they were steady."""
    if not batch_sizes:
        return None
    which = " and ".join(f"batch {size:,}" for size in batch_sizes)
    return (
        f"The step times of {which} were not steady when the timed pass ended, so the speed-up is approximate. "
        "Run it again when the machine is otherwise idle."
    )


def _device_of(run: Run) -> Device | None:
    """Return the run's device; of a queued one, also after an earlier attempt, the requested device."""
    return run.requested_device if run.state == State.QUEUED else run.device or run.requested_device


def _describe_optimizer(optimizer: str) -> str:
    return "no optimizer" if optimizer == "none" else OPTIMIZER_LABELS.get(optimizer, optimizer)
