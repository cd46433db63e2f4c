"""Hides every card from a process that only predicts: a context takes some hundred MiB of a card. Loads no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

HIDDEN = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    # torch.cuda.is_available() then reads the first of these, and does not start the driver
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
"""Environment variables with which a process finds no card."""


@contextmanager
def devices_hidden() -> Iterator[None]:
    """Hide every card in the context, unless this process has opened one before."""
    before = {name: os.environ.get(name) for name in HIDDEN}
    os.environ.update(HIDDEN)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
