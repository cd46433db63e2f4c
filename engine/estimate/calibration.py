"""A card's own constants, measured on it, in place of the catalogue's nominal ones. Loads no torch.

What is measured, and how, stands in `measure_calibration`. Only what was measured is replaced; nothing is
fitted to make an estimate meet a measurement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import EngineError, SpecError
from ..units import MIB, format_bytes
from .gpus import Gpu

SCHEMA = 1
_CONTEXT_BYTES = (1 * MIB, 8192 * MIB)
_TOLERANCE_BYTES = 2 * MIB  # the driver counts in pages of 2 MiB


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one card takes for itself. `gpu_id` is None for a card that is not in the catalogue.

    `cublas_workspace_bytes` is of the thread that runs the forward pass, `autograd_workspace_bytes` of the one that
    runs the backward pass; `cublaslt_workspace_bytes` is what a linear layer with a bias took beyond the first.
    """

    device_name: str
    gpu_id: str | None
    total_bytes: int
    context_bytes: int
    cublas_workspace_bytes: int
    autograd_workspace_bytes: int
    cublaslt_workspace_bytes: int | None
    torch: str
    driver: str | None
    measured_at: str
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        least, most = _CONTEXT_BYTES
        if not least <= self.context_bytes <= most:
            text = (
                f"a context of {format_bytes(self.context_bytes)} is implausible; measure again while the card is idle"
            )
            raise SpecError("calibration", text)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Read such a document. Raises SpecError for any other."""
        if data.get("schema") != SCHEMA:
            raise SpecError("calibration", f"has schema {data.get('schema')!r}; this version reads {SCHEMA}")
        names = [field.name for field in fields(cls)]
        if set(data) != set(names):
            raise SpecError("calibration", f"must have exactly {', '.join(names)}")
        for name in names:
            if name.endswith("_bytes") and not (_is_size(data[name]) or data[name] is None and "lt_" in name):
                raise SpecError("calibration", f"{name} must be a whole number of bytes")
        return cls(**data)

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """From the file that `calibrate --json` was written to."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as exc:
            raise SpecError("calibration", f"{path} cannot be read: {exc}") from exc
        if not isinstance(data, dict):
            raise SpecError("calibration", f"{path} must hold a JSON object")
        return cls.from_dict(data)


def apply(gpu: Gpu, given: Calibration | Mapping[str, Any] | Path) -> Gpu:
    """Give the card the constants measured on one of its class. Raises SpecError if they are of another card."""
    calibration = _calibration(given)
    if calibration.gpu_id not in (None, gpu.id):
        raise SpecError("calibration", f"is of {calibration.gpu_id} ({calibration.device_name}), not of {gpu.id}")
    return replace(
        gpu,
        total_bytes=calibration.total_bytes,
        is_total_exact=True,
        total_source=f"measured on {calibration.measured_at[:10]}",
        context_bytes=calibration.context_bytes,
        cublas_workspace_bytes=calibration.cublas_workspace_bytes,
        calibrated=True,
    )


def context_bytes(used_before: int, used_with_it: int, used_after: int, reserved_bytes: int) -> int:
    """Return the context of a process, from what the driver counts as used before, while and after it ran.

    Raises EngineError where before and after differ: another process came or went, and the difference is no context.
    """
    if abs(used_after - used_before) > _TOLERANCE_BYTES:
        raise EngineError(
            f"another process changed the card's memory by {format_bytes(abs(used_after - used_before))} "
            "while it was measured; measure again while no other process uses it"
        )
    return used_with_it - used_before - reserved_bytes


def _calibration(given: Calibration | Mapping[str, Any] | Path) -> Calibration:
    if isinstance(given, Calibration):
        return given
    return Calibration.read(given) if isinstance(given, Path) else Calibration.from_dict(given)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
