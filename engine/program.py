"""By what name this engine is started: a checkout's is `python -m engine`, the installed package's `memorymark`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

INSTALLED = "memorymark"
PROGRAM = "python -m engine" if __package__ == "engine" else INSTALLED
IMPORTED_FROM = Path(sys.modules[(__package__ or "").partition(".")[0]].__path__[0]).resolve().parent
"""The folder that holds the outermost package: a process that starts there can import this engine."""

MODELS_NEED = ("torch", "torchvision", "transformers", "diffusers", "peft", "PIL")
"""What the models of the catalogue need. The package `memorymark` does not install it: `tune` needs none of it."""


def how_to_install(folder: Path) -> str | None:
    """Return how to install the command, outside the checkout: `python -m engine` may run another engine.py there."""
    if PROGRAM == INSTALLED or folder == IMPORTED_FROM:
        return None
    return (
        f"`{PROGRAM}` runs the engine.py of this folder where there is one; "
        f"`pip install -e {shlex.quote(str(IMPORTED_FROM))}` gives you the command `{INSTALLED}`"
    )


def version_of(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # here: `python -m engine --help` need not wait for it

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def not_installed(name: str) -> str:
    return f"{name} is not installed for {sys.executable}: the models of the catalogue need memorymark[models]"
