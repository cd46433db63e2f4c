"""What an earlier, interrupted attempt of the same spec measured, and whether it still counts.

It counts on the same device with the same environment, but never for the certificate or for speeds: these need this
attempt's own processes. With a finished run's boundary only the speeds are compared again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import SpecError
from ..facts.provenance.parse import OF_A_RUN
from ..facts.result import Boundary, DeviceFacts, Probe, Purpose
from ..text.from_json import from_json

_COMPARED = ("kind", "name", "uuid", "capacity_bytes", "limit_bytes", "driver", "compute_capability")
_DONE_ANEW = (Purpose.SOAK, Purpose.CONFIRM, Purpose.TIMING)
_MEMBERS = {field.name for field in fields(Probe)}


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """Probes of an earlier attempt, its device and environment; `boundary` None: not found, or to be found anew."""

    device: DeviceFacts
    environment: dict[str, Any]
    probes: tuple[Probe, ...]
    boundary: Boundary | None = None

    @classmethod
    def from_dict(cls, data: Any) -> EarlierAttempt:
        """Build the attempt from JSON. Raises SpecError for the field `resume`."""
        try:
            earlier = from_json(cls, data)
        except ValueError as exc:
            raise SpecError("resume", f"is not device, environment and probes: {exc}") from exc
        unknown = {name for probe in data["probes"] for name in probe} - _MEMBERS
        if unknown:
            raise SpecError("resume", f"a probe has no {min(unknown)[:40]}; it has {', '.join(sorted(_MEMBERS))}")
        if any(probe.batch_size < 1 for probe in earlier.probes):
            raise SpecError("resume", "a probe has a batch size below 1")
        if earlier.boundary is not None and (earlier.boundary.largest_batch_size or 0) < 0:
            raise SpecError("resume", "a boundary has a largest_batch_size below 0")
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
    """Return names with their values as JSON, which a set can hold; without those of a single run."""
    lasting = {name: value for name, value in environment.items() if name not in OF_A_RUN}
    return {(name, json.dumps(value, sort_keys=True)) for name, value in lasting.items()}
