"""Makes `import torchvision` work where torch is the CPU build and torchvision's compiled part cannot load.

There `import torchvision` stops with "operator torchvision::nms does not exist", and takes every model of
transformers down with it. Its models and transforms need none of the compiled operators: declaring the
schemas of the two that are registered at import time is enough. Done only when the import really fails,
and `was_needed` says so in the environment of the result.
"""

from __future__ import annotations

import importlib
import sys

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_alive: list[torch.library.Library] = []  # a Library un-declares its operators when it is collected


def was_needed() -> bool:
    return bool(_alive)


def import_torchvision() -> None:
    """Import torchvision, declaring the missing operator schemas if that is what stops it."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError as exc:
        if "torchvision::nms does not exist" not in str(exc):
            raise
        _declare()
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")


def _declare() -> None:
    library = torch.library.Library("torchvision", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
    _alive.append(library)
