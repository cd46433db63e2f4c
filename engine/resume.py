"""What an earlier, interrupted attempt of the same spec measured, and whether it still counts.

It counts on the same device with the same environment, and never for the certificate: its soaks and
confirmations are left out, and its refusals are not from a fresh process of this attempt. Its timings are left out
too: speeds are compared only within one attempt, in one process.

A finished run is taken over with its boundary, so that its speeds alone are compared again: all its probes but the
timings stay unchanged, and the boundary's note names the origin of its certificate.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from .errors import SpecError
from .result import Boundary, DeviceFacts, MemoryByKind, Outcome, Probe, Purpose

_COMPARED = ("kind", "name", "uuid", "capacity_bytes", "limit_bytes", "driver", "compute_capability")
_DONE_ANEW = (Purpose.SOAK, Purpose.CONFIRM, Purpose.TIMING)
_NOTHING = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "int | None": (int, _NOTHING),
    "float": (int, float),
    "float | None": (int, float, _NOTHING),
    "bool": (bool,),
    "bool | None": (bool, _NOTHING),
    "str | None": (str, _NOTHING),
    "tuple[float, ...]": (tuple,),
    "Outcome": (Outcome,),
    "Purpose": (Purpose,),
    "MemoryByKind | None": (MemoryByKind, _NOTHING),
    "dict[str, Any] | None": (dict, _NOTHING),
}


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """Probes of an earlier attempt, with the device and the environment they were run in.

    `boundary` is None where the search had not come to its end, or is to be done anew.
    """

    device: DeviceFacts
    environment: dict[str, Any]
    probes: tuple[Probe, ...]
    boundary: Boundary | None = None

    @classmethod
    def from_dict(cls, data: Any) -> EarlierAttempt:
        """Build it from JSON. Raises SpecError for the field `resume` when that is not what it should be."""
        try:
            device, environment, probes = data["device"], data["environment"], data["probes"]
            if not isinstance(environment, dict):
                raise TypeError("the environment is no object")
            boundary = None if data.get("boundary") is None else Boundary.from_dict(data["boundary"])
            earlier = cls(
                DeviceFacts.from_dict(device), environment, tuple(Probe.from_dict(p) for p in probes), boundary
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise SpecError("resume", f"is not device, environment and probes: {type(exc).__name__}: {exc}") from exc
        for probe in earlier.probes:
            _check(probe)
        largest = None if boundary is None else boundary.largest_batch_size
        if largest is not None and (type(largest) is not int or largest < 0):
            raise SpecError("resume", "a boundary has a largest_batch_size that is no batch size")
        return earlier

    def differences(self, device: DeviceFacts, environment: dict[str, Any]) -> list[str]:
        """Name what is not as it was; empty when the probes can be carried over."""
        of_device = [name for name in _COMPARED if getattr(self.device, name) != getattr(device, name)]
        of_environment = {name for name, _ in _items(self.environment) ^ _items(environment)}
        return [f"the device's {name}" for name in of_device] + [
            f"the environment's {name}" for name in sorted(of_environment)
        ]

    def carried(self) -> list[Probe]:
        """Return the probes that need not be run again, each once, in their order."""
        if self.boundary is not None:
            return [p for p in self.probes if p.purpose is not Purpose.TIMING]
        reusable = (p for p in self.probes if p.purpose not in _DONE_ANEW)
        return list(dict.fromkeys(p if p.fits else replace(p, fresh_process=False) for p in reusable))


def _items(environment: dict[str, Any]) -> set[tuple[str, str]]:
    """Names with their values as JSON, so that any value can be an element of a set."""
    return {(name, json.dumps(value, sort_keys=True)) for name, value in environment.items()}


def _check(probe: Probe) -> None:
    for field in fields(probe):
        value, declared = getattr(probe, field.name), str(field.type)
        is_wrong_bool = isinstance(value, bool) and not declared.startswith("bool")
        if is_wrong_bool or not isinstance(value, _TYPES[declared]):
            raise SpecError("resume", f"a probe has a {field.name} of the wrong type")
    kinds = probe.memory_by_kind
    if not all(isinstance(n, (int, float)) for n in (*probe.timed_step_seconds, *(astuple(kinds) if kinds else ()))):
        raise SpecError("resume", "a probe has times or bytes that are no numbers")
    if probe.batch_size < 1:
        raise SpecError("resume", f"a probe has batch size {probe.batch_size}")
