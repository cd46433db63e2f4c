"""A card's constants as measured on it by `measure_calibration`, in place of nominal ones. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import EngineError, SpecError
from ..facts.result_file import read_document
from ..text.units import MIB, format_bytes
from .gpus import Gpu

SCHEMA = 1
_CONTEXT_BYTES = (1 * MIB, 8192 * MIB)
_TOLERANCE_BYTES = 2 * MIB  # the driver counts in pages of 2 MiB


@dataclass(frozen=True, slots=True)
class Calibration:
    """Memory that one card takes for context and workspaces. `gpu_id` is None for a card outside the catalogue.

    cuBLAS takes a workspace in the forward pass's thread and one in autograd's; cuBLASLt's is of a layer with a bias.
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
                f"a context of {format_bytes(self.context_bytes)} is implausible; measure again while the GPU is idle"
            )
            raise SpecError("calibration", text)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Read a calibration document. Raises SpecError for any other."""
        if data.get("schema") != SCHEMA:
            raise SpecError("calibration", f"has schema {data.get('schema')!r}; this version reads {SCHEMA}")
        names = [field.name for field in fields(cls)]
        if set(data) != set(names):
            raise SpecError("calibration", f"must have exactly {', '.join(names)}")
        for name in names:
            size = data[name] if name.endswith("_bytes") else 0
            is_optional = size is None and "lt_" in name
            if not is_optional and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
                raise SpecError("calibration", f"{name} must be a whole number of bytes")
        return cls(**data)

    @classmethod
    def read(cls, path: Path) -> Calibration:
        data = read_document(str(path), "calibration")
        if not isinstance(data, dict):
            raise SpecError("calibration", f"{path} must hold a JSON object")
        return cls.from_dict(data)


def apply(gpu: Gpu, given: Calibration | Mapping[str, Any] | Path) -> Gpu:
    """Give the card the constants measured on a card of the same model. Raises SpecError for those of another model."""
    given = Calibration.read(given) if isinstance(given, Path) else given
    calibration = given if isinstance(given, Calibration) else Calibration.from_dict(given)
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
    """Return a process's context by the driver's used bytes. Raises EngineError if before and after it differ."""
    if abs(used_after - used_before) > _TOLERANCE_BYTES:
        raise EngineError(
            f"another process changed the GPU's memory by {format_bytes(abs(used_after - used_before))} "
            "while it was measured; measure again while no other process uses it"
        )
    return used_with_it - used_before - reserved_bytes
