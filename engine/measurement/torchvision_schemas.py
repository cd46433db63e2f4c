"""Makes `import torchvision` work with a CPU build of torch, where torchvision's compiled part cannot load.

There `import torchvision` fails with "operator torchvision::nms does not exist", and so does every model of
transformers. Its models and transforms need none of the compiled operators: declaring the schemas of the two that are
registered at import time is enough. That is done only when the import really fails, and `was_needed` records it in the
environment of the result.
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
    """Import torchvision; declare the missing operator schemas if the import fails because of them."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError as exc:
        if "torchvision::nms does not exist" not in str(exc):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for schema in _SCHEMAS:
            library.define(schema)
        _alive.append(library)
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")
