"""What a measurement was made with: versions, settings that change memory or speed, revision. Needs torch."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch

from ..errors import SpecError
from ..facts.provenance.read import commit_of
from ..program import version_of
from ..settings.spec import RunSpec
from ..settings.training_spec import check_device_memory, check_expandable_segments
from .device import Device
from .torchvision_schemas import was_needed

_TF32_OR_NOT = ("fp32", "tf32")
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
RECORDED_VARIABLES = {
    "cublas_workspace": "CUBLAS_WORKSPACE_CONFIG",
    "cublaslt_workspace": "CUBLASLT_WORKSPACE_SIZE",
    "cuda_module_loading": "CUDA_MODULE_LOADING",
    "tf32_override": "NVIDIA_TF32_OVERRIDE",
}
"""Variables that change a GPU's memory or speed and show in no other figure."""


def allocator_settings() -> str | None:
    return next((value for name in ALLOCATOR_VARIABLES if (value := os.environ.get(name))), None)


def check_environment(spec: RunSpec, device_type: str) -> None:
    """Refuse environment variables that would make the result invalid, naming the variable to unset."""
    check_expandable_segments(spec, device_type == "cuda")
    check_device_memory(spec, device_type)
    if device_type == "cpu":
        return
    settings = (allocator_settings() or "").replace(" ", "")
    if "per_process_memory_fraction" in settings:
        raise SpecError(
            "memory_limit_bytes",
            "PYTORCH_ALLOC_CONF sets per_process_memory_fraction, a limit that the result would not show; "
            "leave it out and give the limit with --memory-limit",
        )
    if "backend:cudaMallocAsync" in settings:
        raise SpecError(
            "allocator_settings",
            "PYTORCH_ALLOC_CONF chooses backend:cudaMallocAsync, whose reserve and events are counted otherwise; "
            "only the native allocator can be measured",
        )
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"):
        raise SpecError(
            "allocator_settings",
            "PYTORCH_NO_CUDA_MEMORY_CACHING is set: without its cache the allocator counts nothing",
        )
    override = os.environ.get("NVIDIA_TF32_OVERRIDE")
    if (
        override is not None
        and override != ("1" if spec.precision == "tf32" else "0")
        and spec.precision in _TF32_OR_NOT
    ):
        raise SpecError(
            "precision",
            f"NVIDIA_TF32_OVERRIDE={override} decides about TF32 instead of precision {spec.precision}; unset it",
        )


def environment(spec: RunSpec, device: Device) -> dict[str, Any]:
    checkout = Path(__file__).resolve().parents[2]
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "torch": torch.__version__,
        "torchvision": version_of("torchvision"),
        "transformers": version_of("transformers"),
        "diffusers": version_of("diffusers"),
        "peft": version_of("peft"),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        "allocator_settings": allocator_settings(),
        "allocator_backend": torch.cuda.get_allocator_backend() if device.torch_device.type == "cuda" else None,
        **{name: os.environ.get(variable) for name, variable in RECORDED_VARIABLES.items()},
        **device.settings(),
        "cpu_threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "weights": "pretrained" if spec.pretrained else "random",
        "torchvision_schemas_declared": was_needed(),
        "memorymark_revision": commit_of(checkout) if (checkout / ".git").exists() else None,
    }
