"""Names and phrases that several pages share: the model, its settings, the place it ran, why a search ended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.formatting import round_bytes
from analysis.models import Run
from engine.facts.result import DeviceFacts
from engine.settings.catalog import WORKLOADS
from engine.settings.catalog.from_config import CONFIG
from engine.settings.catalog.stored_workload import stored_workload
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES, DEFAULTS, SETTINGS, TRAINING_SETTINGS
from engine.settings.step_settings import PURE_BF16
from engine.text.printable import printable

_NAME_LENGTH = 100
_AUTOCAST = ("bf16", "fp16")
DEVICE_LABELS = {"cuda": "GPU", "cpu": "CPU"}
"""What pages call a kind of device; others by their name in capital letters."""
_FAMILIES = {
    "cnn": "convolutional networks",
    "transformer": "transformers",
    "mixture_of_experts": "mixtures of experts",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a small label with an icon, so that it does not depend on colour."""

    icon: str
    word: str
    css_class: str


def model_name(model: str) -> str:
    """Write "bert" as "BERT base" and a model of a config as "config cd3dea"; a model no longer offered keeps its id.

    A name stored before names were checked is shown without control characters.
    """
    if model in WORKLOADS:
        return WORKLOADS[model].name
    trained, comma, ranks = model.partition(", ")
    if trained in WORKLOADS and comma:  # on several ranks
        return f"{WORKLOADS[trained].name}, {printable(ranks, _NAME_LENGTH)}"
    own = re.fullmatch(rf"{CONFIG}-([0-9a-f]{{6}})[0-9a-f]*", model)
    return f"{CONFIG} {own[1]}" if own else printable(model, _NAME_LENGTH) or "a training"


def family_name(model: str) -> str:
    return _FAMILIES[WORKLOADS[model].architecture] if model in WORKLOADS else model


def describe_settings(spec: Mapping[str, Any], checked: str = "") -> list[str]:
    own = stored_workload(spec) if spec.get(CONFIG) else None
    named = [own.name.partition(",")[0]] if own else []
    optimizer = spec["optimizer"]
    optimizer = "no optimizer" if optimizer == "none" else SETTINGS["optimizer"].text_of(optimizer)
    described = [*named, checked, short_precision(spec), optimizer, describe_input(spec)]
    for name in TRAINING_SETTINGS:
        value = spec.get(name, DEFAULTS[name])
        if name not in ("precision", "optimizer") and value != DEFAULTS[name]:
            described.append(SETTINGS[name].describe(value))
    if like := spec.get("like"):
        described.append(f"settings of {like}")
    return [text for text in described if text]


def short_precision(spec: Mapping[str, Any]) -> str:
    """Write the precision in a word or two: "bf16", "pure bf16"."""
    return "pure bf16" if spec["precision"] == PURE_BF16 else str(spec["precision"])


def describe_precision(spec: Mapping[str, Any]) -> str:
    """Write the precision with what the weights are in: "bf16 autocast, fp32 weights"."""
    precision = short_precision(spec)
    if precision not in _AUTOCAST:
        return precision
    is_quantized = spec.get("load_in_4bit") or spec.get("load_in_8bit")
    return f"{precision} autocast" if is_quantized else f"{precision} autocast, fp32 weights"


def settings_in_full(settings: Sequence[str], spec: Mapping[str, Any]) -> list[str]:
    """Say of a half precision what stays in fp32: a model loaded in bf16 takes half the memory."""
    if "precision" not in spec:  # nothing is known of one's own training
        return [*settings]
    in_short, in_full = short_precision(spec), describe_precision(spec)
    return [in_full if text == in_short else text for text in settings]


def describe_limit(limit_bytes: int | None) -> str:
    """Write "limited to 256 MiB"; empty without a limit."""
    return f"limited to {round_bytes(limit_bytes)}" if limit_bytes else ""


def name_of_run(run: Run) -> str:
    """Write "BERT tiny, limited to 256 MiB"."""
    return ", ".join(filter(None, [model_name(run.model), describe_limit(limit_of_run(run))]))


def limit_of_run(run: Run) -> int | None:
    """Return a run's memory limit below its device's memory; None without, as for a CPU's default limit."""
    if requested := run.spec.get("memory_limit_bytes"):
        return int(requested)
    if run.limit_bytes and run.capacity_bytes:  # it has a result
        return run.limit_bytes if run.limit_bytes < run.capacity_bytes else None
    return CPU_DEFAULT_LIMIT_BYTES if run.requested_kind == "cpu" else None


def describe_input(spec: Mapping[str, Any]) -> str:
    """Write "128 tokens" or "224 px"."""
    workload = stored_workload(spec)
    if workload is None:
        return ""
    size = spec.get(workload.input_field) or workload.default_input_size
    return f"{size} tokens" if workload.is_text else f"{size} px"


def place(device: DeviceFacts, limit_bytes: int) -> str:
    """Write "On this A100-SXM4-40GB,", with the memory limit of the run if it is below the device's memory."""
    name = "CPU" if device.kind == "cpu" else short_device_name(device.name)
    limit = f" {describe_limit(limit_bytes)}," if limit_bytes < device.capacity_bytes else ""
    return f"On this {name},{limit}"


def describe_several(name: str, ranks: int) -> str:
    """Write "A100 SXM4 80 GB" for one GPU, and "8 × A100 SXM4 80 GB" for eight."""
    return name if ranks == 1 else f"{ranks} × {name}"


def short_device_name(name: str) -> str:
    """Write the name without the vendor: "A100-SXM4-40GB"."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")
