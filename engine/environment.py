"""What a measurement was made with: versions, allocator settings, threads, revision. Needs torch."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from engine.spec import RunSpec
from engine.torchvision_schemas import was_needed


def environment(spec: RunSpec) -> dict[str, Any]:
    """JSON-ready facts; a comparison of two runs begins with their differences."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "torch": torch.__version__,
        "torchvision": _version("torchvision"),
        "transformers": _version("transformers"),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        "allocator_settings": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        "cpu_threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "weights": "pretrained" if spec.pretrained else "random",
        "torchvision_schemas_declared": was_needed(),
        "memorymark_revision": _git_revision(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """The commit this engine was checked out at, with "+" when files differ; None outside a checkout."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
