"""PURE: which series a run belongs to. Runs of one series can be laid side by side over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from engine.catalog import WORKLOADS


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """One workload, its settings and a card: runs that agree in all of it can be laid side by side over time.

    `input_size` is in tokens or pixels. A setting that the address leaves out is the default of a new run.
    """

    model: str
    gpu: str
    precision: str = "fp32"
    optimizer: str = "adamw"
    mode: str = "train"
    gradient_checkpointing: bool = False
    pretrained: bool = False
    input_size: int | None = None
    memory_limit_bytes: int | None = None

    @classmethod
    def of_run(cls, spec: Mapping[str, Any], gpu: str) -> SeriesKey:
        """The series a stored run belongs to."""
        size = spec.get("sequence_length") or spec.get("image_size") or default_input_size(spec["model"])
        return cls(
            model=spec["model"],
            gpu=gpu,
            precision=spec["precision"],
            optimizer=spec["optimizer"],
            mode=spec.get("mode", "train"),
            gradient_checkpointing=bool(spec.get("gradient_checkpointing")),
            pretrained=bool(spec.get("pretrained")),
            input_size=size,
            memory_limit_bytes=spec.get("memory_limit_bytes"),
        )

    @property
    def address(self) -> str:
        """As the query of an address; what is a default is left out."""
        plain = SeriesKey(self.model, self.gpu, input_size=default_input_size(self.model))
        values = {name: getattr(self, name) for name in self.__slots__}
        told = {n: v for n, v in values.items() if n in ("model", "gpu") or v != getattr(plain, n)}
        return "?" + urlencode({n: "1" if v is True else v for n, v in told.items() if v not in (None, False)})


def default_input_size(model: str) -> int | None:
    """What a run of the model takes without being asked; None for a model that is no longer offered."""
    return WORKLOADS[model].default_input_size if model in WORKLOADS else None
