"""PURE: which versions and settings differ from the baseline's: the possible causes of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..facts.provenance.parse import OF_ONE_RUN
from ..questions.documents.measured import Measured
from ..settings.setting import Role
from ..settings.spec import DEFAULTS, SETTINGS

FIRST = ("torch", "cuda", "hip", "cudnn", "transformers", "torchvision", "diffusers", "memorymark_revision")
"""The likeliest causes of another figure, in this order, after the driver."""
_NO_SUSPECTS = (*OF_ONE_RUN, "host")
_NO_CAUSE = (Role.ASSUMPTION, Role.WORKLOAD, Role.PLACE, Role.ORIGIN)


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    before: str
    now: str

    @property
    def text(self) -> str:
        """Write "torch: 2.12.0 -> 2.13.0"."""
        return f"{self.name}: {self.before} -> {self.now}"


def changes(now: Measured, baseline: Measured) -> list[Difference]:
    """Name the differences, the likeliest cause first: driver, versions, settings, then the rest."""
    pairs: dict[str, tuple[Any, Any]] = {"driver": (baseline.device.driver, now.device.driver)}
    before, after = baseline.environment, now.environment
    for name in (*FIRST, *sorted({*before, *after} - {*FIRST, *_NO_SUSPECTS})):
        pairs[name] = (before.get(name), after.get(name))
    settings: dict[str, tuple[Any, Any]] = {}
    for name, each in SETTINGS.items():
        if each.role not in _NO_CAUSE and name not in pairs:
            default = DEFAULTS.get(name)
            settings[name] = baseline.spec.get(name, default), now.spec.get(name, default)
    likely = {name: pairs.pop(name) for name in ("driver", *FIRST)}
    others = {"memory limit of the device": (baseline.device.limit_bytes, now.device.limit_bytes)}
    others["shared device"] = (baseline.device.is_shared, now.device.is_shared)
    in_order = {**likely, **settings, **others, **pairs}
    return [Difference(name, _text(old), _text(new)) for name, (old, new) in in_order.items() if old != new]


def _text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)
