"""The environment of a run: card, driver, versions, allocator, other users of the card. Recorded facts as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analysis.formatting import bytes_text
from engine.facts.provenance.parse import OF_ONE_RUN
from engine.facts.result import DeviceFacts
from engine.text.units import sentence_case

NOT_RECORDED, NONE = "not recorded", "none"
MAY_AFFECT_FIGURES = (
    "device_name",
    "capacity_bytes",
    "driver",
    "cuda",
    "hip",
    "torch",
    "transformers",
    "allocator_settings",
    "is_shared",
    "carried_probes",
)
"""Recorded facts that may affect figures by themselves: a difference is shown before any figure."""
_TITLES = {
    "device_name": "Device",
    "capacity_bytes": "Capacity",
    "driver": "Driver",
    "compute_capability": "Compute capability",
    "cuda": "CUDA",
    "hip": "HIP",
    "cudnn": "cuDNN",
    "cpu_threads": "CPU threads",
    "float32_matmul_precision": "Precision of float32 products",
    "memorymark_revision": "MemoryMark revision",
    "allocator_settings": "Allocator settings",
    "is_shared": "Shared device",
    "carried_probes": "Carried-over probes",
}
_PACKAGES = frozenset({"torch", "torchvision", "transformers", "diffusers", "peft"})


def environment_title(name: str) -> str:
    if name in _PACKAGES:
        return name
    return _TITLES.get(name, sentence_case(name.replace("_", " ")))


COMPARABILITY_FACTS = tuple(map(environment_title, MAY_AFFECT_FIGURES))

Facts = dict[str, str]
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b")
"""A commit or a digest: its beginning says as much to a reader."""


def environment_facts(device: DeviceFacts, environment: Mapping[str, Any], carried_probes: int = 0) -> Facts:
    held = device.foreign_used_bytes  # None on a CPU, and without the driver's count
    shared = f"yes, {bytes_text(held)} by others" if held else "yes"
    if not device.is_shared:
        shared = NOT_RECORDED if held is None else "no"
    of_the_device = {
        "device_name": device.name,
        "capacity_bytes": bytes_text(device.capacity_bytes),
        "driver": _text(device.driver),
        "compute_capability": _text(device.compute_capability),
        "is_shared": shared,
        "carried_probes": str(carried_probes) if carried_probes else "none",
    }
    facts = {environment_title(name): text for name, text in of_the_device.items()}
    for name, value in environment.items():
        if name not in OF_ONE_RUN:
            # recorded as absent: only a fact that was not recorded is unknown
            absent = "default" if name == "allocator_settings" else NONE
            facts[environment_title(name)] = absent if value in (None, "") else _DIGEST.sub(r"\1", str(value))
    return facts


def changed(before: Facts, after: Facts) -> list[tuple[str, str, str]]:
    """Name, value before, value after, of each fact that is not the same; the weighty ones first."""
    names = [*COMPARABILITY_FACTS, *(name for name in {**before, **after} if name not in COMPARABILITY_FACTS)]
    pairs = [(name, before.get(name, NOT_RECORDED), after.get(name, NOT_RECORDED)) for name in names]
    return [(name, old, new) for name, old, new in pairs if old != new]


def _text(value: Any) -> str:
    return NOT_RECORDED if value in (None, "") else str(value)
