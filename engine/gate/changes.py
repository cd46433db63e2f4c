"""PURE: which versions and settings are not those of the baseline: what a regression may come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..provenance.parse import OF_ONE_RUN
from ..setting import Role
from ..spec import DEFAULTS, SETTINGS
from .compare import Measured

FIRST = ("torch", "cuda", "hip", "cudnn", "transformers", "torchvision", "diffusers", "memorymark_revision")
"""The likeliest causes of another figure, in this order; the driver stands before them."""
_NO_SUSPECTS = (*OF_ONE_RUN, "host")
_NO_CAUSE = (Role.ASSUMPTION, Role.WORKLOAD, Role.PLACE)


@dataclass(frozen=True, slots=True)
class Change:
    """A version or a setting, before and now."""

    name: str
    before: str
    now: str

    @property
    def text(self) -> str:
        """Write "torch: 2.12.0 -> 2.13.0"."""
        return f"{self.name}: {self.before} -> {self.now}"


def changes(now: Measured, baseline: Measured) -> list[Change]:
    """Name what was different, the likeliest cause first: driver, versions, settings, then the rest."""
    pairs: dict[str, tuple[Any, Any]] = {"driver": (baseline.device.driver, now.device.driver)}
    before, after = baseline.environment, now.environment
    for name in (*FIRST, *sorted({*before, *after} - {*FIRST, *_NO_SUSPECTS})):
        pairs[name] = (before.get(name), after.get(name))
    settings = {name: each for name, each in _pairs_of_settings(now, baseline).items() if name not in pairs}
    likely = {name: pairs.pop(name) for name in ("driver", *FIRST)}
    others = {"memory limit of the device": (baseline.device.limit_bytes, now.device.limit_bytes)}
    others["shared device"] = (baseline.device.is_shared, now.device.is_shared)
    in_order = {**likely, **settings, **others, **pairs}
    return [Change(name, _text(old), _text(new)) for name, (old, new) in in_order.items() if old != new]


def _pairs_of_settings(now: Measured, baseline: Measured) -> Mapping[str, tuple[Any, Any]]:
    names = [name for name, each in SETTINGS.items() if each.role not in _NO_CAUSE]
    before, after = baseline.spec, now.spec
    return {n: (before.get(n, DEFAULTS.get(n)), after.get(n, DEFAULTS.get(n))) for n in names}


def _text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)
