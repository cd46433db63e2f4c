"""The environment of a run: card, driver, versions, allocator, other users of the card. Recorded facts as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.presentation.formatting import bytes_text
from engine.provenance.parse import OF_ONE_RUN
from engine.result import DeviceFacts

NOT_RECORDED = "not recorded"
COMPARABILITY_FACTS = (
    "GPU",
    "Capacity",
    "Driver",
    "CUDA",
    "HIP",
    "torch",
    "transformers",
    "Allocator settings",
    "Shared device",
    "Carried-over probes",
)
"""Facts that may affect figures by themselves: a difference is shown before any figure."""

Facts = dict[str, str]
_TITLES = {"cuda": "CUDA", "hip": "HIP", "allocator_settings": "Allocator settings"}


def environment_facts(device: DeviceFacts, environment: Mapping[str, Any], carried_probes: int = 0) -> Facts:
    """Return every recorded fact, by its label on the page; not those that are new with each run."""
    lasting = {name: value for name, value in environment.items() if name not in OF_ONE_RUN}
    return {
        "GPU": device.name,
        "Capacity": bytes_text(device.capacity_bytes),
        "Driver": _text(device.driver),
        "Compute capability": _text(device.compute_capability),
        "Shared device": _describe_sharing(device),
        "Carried-over probes": str(carried_probes) if carried_probes else "none",
        **{environment_title(name): _environment_text(name, value) for name, value in lasting.items()},
    }


def changed(before: Facts, after: Facts) -> list[tuple[str, str, str]]:
    """Name, value before, value after, of each fact that is not the same; the weighty ones first."""
    names = [*COMPARABILITY_FACTS, *(name for name in {**before, **after} if name not in COMPARABILITY_FACTS)]
    pairs = [(name, before.get(name, NOT_RECORDED), after.get(name, NOT_RECORDED)) for name in names]
    return [(name, old, new) for name, old, new in pairs if old != new]


def environment_title(name: str) -> str:
    """Name a fact of the engine's environment as the pages do."""
    return _TITLES.get(name, name.replace("_", " "))


def _text(value: Any) -> str:
    return NOT_RECORDED if value in (None, "") else str(value)


def _environment_text(name: str, value: Any) -> str:
    """Write "none" or the default for a fact that was recorded as absent; only an unrecorded fact is unknown."""
    if value in (None, ""):
        return "default" if name == "allocator_settings" else "none"
    return str(value)


def _describe_sharing(device: DeviceFacts) -> str:
    """Say whether others used the device; nobody measures that on a CPU, nor without the driver's count."""
    if not device.is_shared:
        return NOT_RECORDED if device.foreign_used_bytes is None else "no"
    held = device.foreign_used_bytes
    return f"yes, {bytes_text(held)} by others" if held else "yes"
