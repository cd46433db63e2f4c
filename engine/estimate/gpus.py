"""The GPU catalogue: `gpus.toml`, which says what fields mean, and a lab's own file, named by MEMORYMARK_GPUS."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..errors import SpecError
from ..program import PROGRAM
from ..text.units import GIB, KIB, MIB, TIB, format_bytes
from .gpu_fields import checked_card
from .reductions import Processors

OWN_CATALOGUE = "MEMORYMARK_GPUS"
_SHIPPED = Path(__file__).with_name("gpus.toml")

_CUBLAS_WORKSPACE_BYTES = (2 * 4096 + 8 * 16) * KIB
_CUBLAS_LARGE_WORKSPACE_BYTES = 32 * MIB
_MAJORS_WITH_LARGE_WORKSPACE = (9, 10, 12)

# NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability
_THREADS_OF_A_MULTIPROCESSOR = {
    **dict.fromkeys([(6, 0), (6, 1), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3)], 2048),
    **dict.fromkeys([(8, 6), (8, 7), (8, 9), (12, 0), (12, 1)], 1536),
    (7, 5): 1024,
}

_UNNAMED_CAPABILITY = (8, 0)
_UNNAMED_MULTIPROCESSORS = 108
_UNNAMED_CONTEXT_BYTES = 500 * MIB
_UNNAMED_TOTAL_BYTES = (1 * GIB, 1 * TIB)

_SAME_CARD = 0.06
"""Share by which a card's total may differ from the catalogue's: drivers differ by 1 %, error correction takes 6 %."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card, by the fields of `gpus.toml`; `context_bytes` is nominal unless `calibrated`. None is unknown."""

    id: str
    name: str
    vendor: Literal["nvidia", "amd"]
    total_bytes: int
    is_total_exact: bool
    compute_capability: tuple[int, int] | None
    context_bytes: int
    cublas_workspace_bytes: int
    calibrated: bool
    dense_tflops: Mapping[str, float] = field(hash=False)
    memory_bandwidth_bytes_per_second: float | None
    price_per_hour_usd: float | None = None
    price_source: str | None = None
    price_date: str | None = None
    total_source: str | None = None
    torch_names: tuple[str, ...] = ()
    multiprocessors: int | None = None

    @property
    def processors(self) -> Processors | None:
        """The processors that decide the size of sum buffers. None where unknown: AMD's cards follow other rules."""
        threads = _THREADS_OF_A_MULTIPROCESSOR.get(self.compute_capability or (0, 0))
        return None if self.multiprocessors is None or threads is None else Processors(self.multiprocessors, threads)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON, in the order of the fields."""
        capability = self.compute_capability and "{}.{}".format(*self.compute_capability)
        return asdict(self) | {"compute_capability": capability, "torch_names": list(self.torch_names)}


def gpus() -> dict[str, Gpu]:
    """Return the whole catalogue by id, in its order; the lab's own cards last."""
    return dict(_catalogue(os.environ.get(OWN_CATALOGUE)))


def find(gpu_id: str) -> Gpu:
    """Find the card of that id. Raises SpecError with the nearest ids if there is none."""
    known = gpus()
    if gpu_id in known:
        return known[gpu_id]
    raise SpecError("gpu", f"{gpu_id[:80]!r} is not in the catalogue; {_advice(gpu_id, list(known))}")


def find_by_words(text: str) -> Gpu:
    """Find the card that a person typed: its id, or whole words of it that only one has, as 4090. Raises SpecError."""
    of_words = [gpu for gpu_id, gpu in gpus().items() if f"-{_as_id(text)}-" in f"-{gpu_id}-"]
    return of_words[0] if len(of_words) == 1 else find(text)


def of_memory(total_bytes: int) -> Gpu:
    """Make a nameless card with `total_bytes` of memory that is like an A100 in all else."""
    least, most = _UNNAMED_TOTAL_BYTES
    if not least <= total_bytes <= most:
        allowed = f"from {format_bytes(least)} to {format_bytes(most)}"
        raise SpecError("memory", f"{format_bytes(total_bytes)} is no GPU's memory; {allowed}")
    return Gpu(
        id=f"memory-{total_bytes}",
        name=f"a GPU with {format_bytes(total_bytes)}",
        vendor="nvidia",
        total_bytes=total_bytes,
        is_total_exact=True,
        compute_capability=_UNNAMED_CAPABILITY,
        context_bytes=_UNNAMED_CONTEXT_BYTES,
        cublas_workspace_bytes=cublas_workspace_bytes(_UNNAMED_CAPABILITY),
        calibrated=False,
        dense_tflops={},
        memory_bandwidth_bytes_per_second=None,
        multiprocessors=_UNNAMED_MULTIPROCESSORS,
    )


def match(name: str, capacity_bytes: int) -> Gpu | None:
    """Find the catalogue's card for a device, by the name torch gives it and a total that such a card can have."""
    wanted = name.strip().casefold()
    for gpu in gpus().values():
        is_near = abs(capacity_bytes - gpu.total_bytes) <= _SAME_CARD * gpu.total_bytes
        if is_near and wanted in (known.casefold() for known in gpu.torch_names):
            return gpu
    return None


def cublas_workspace_bytes(compute_capability: tuple[int, int] | None) -> int:
    """Return what cuBLAS takes per thread, 0 on ROCm (torch 2.13, `aten/src/ATen/cuda/CublasHandlePool.cpp`)."""
    if compute_capability is None:
        return 0
    is_large = compute_capability[0] in _MAJORS_WITH_LARGE_WORKSPACE
    return _CUBLAS_LARGE_WORKSPACE_BYTES if is_large else _CUBLAS_WORKSPACE_BYTES


def _as_id(text: str) -> str:
    return text.strip().casefold().replace(" ", "-").replace("_", "-")


def _advice(gpu_id: str, known: list[str]) -> str:
    """Suggest ids: first those that contain what was typed, as "a100" means a100-40gb or a100-80gb."""
    wanted = _as_id(gpu_id)
    containing = [name for name in known if wanted and wanted in name]
    nearest = containing or get_close_matches(wanted, known, n=4, cutoff=0.5)
    if nearest:
        return f"did you mean {', '.join(nearest[:4])}?"
    return f"`{PROGRAM} gpus` lists it"


@cache
def _catalogue(own_path: str | None) -> dict[str, Gpu]:
    tables = _read(_SHIPPED)
    if own_path:
        for gpu_id, table in _read(Path(own_path)).items():
            tables[gpu_id] = {**tables.get(gpu_id, {}), **table}
    return {gpu_id: _gpu(gpu_id, table) for gpu_id, table in tables.items()}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise SpecError(OWN_CATALOGUE, f"{path} cannot be read: {exc}") from exc
    for gpu_id, table in tables.items():
        if not isinstance(table, dict):
            raise SpecError(gpu_id[:80], f"in {path}: write a table per GPU, [{gpu_id}]")
    return tables


def _gpu(gpu_id: str, table: dict[str, Any]) -> Gpu:
    card = checked_card(gpu_id, table)
    major, _, minor = card.pop("compute_capability", "").partition(".")
    capability = (int(major), int(minor)) if major else None
    return Gpu(
        id=gpu_id,
        compute_capability=capability,
        context_bytes=card.pop("context_mib") * MIB,
        cublas_workspace_bytes=cublas_workspace_bytes(capability),
        calibrated=False,
        memory_bandwidth_bytes_per_second=card.pop("memory_bandwidth_gb_per_second") * 1e9,
        price_date=str(card.pop("price_date", "")) or None,
        **card,  # the other fields have the names of the file
    )
