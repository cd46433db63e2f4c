"""By what name this engine is started: a checkout's is `python -m engine`, the installed package's `memorymark`."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = "python -m engine" if __package__ == "engine" else "memorymark"
IMPORTED_FROM = Path(__file__).resolve().parents[(__package__ or "").count(".") + 1]
"""The folder that holds the outermost package: a process that starts there can import this engine."""

MODELS_NEED = ("torch", "torchvision", "transformers", "diffusers", "peft", "PIL")
"""What the models of the catalogue need. The package `memorymark` does not install it: `tune` needs none of it."""


def not_installed(name: str) -> str:
    """Return the sentence for a module of `MODELS_NEED` that is missing."""
    return f"{name} is not installed for {sys.executable}: the models of the catalogue need memorymark[models]"
