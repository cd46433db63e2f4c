"""Keeps a process that only predicts away from every card. Loads no torch.

A context takes some hundred MiB of a card, which a measurement on it would then lack. PyTorch makes one for much less
than a computation: autograd's threads and the guards of fake tensors set their device, and that is enough.
"""

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
"""What the environment must hold for a process to find no card."""


@contextmanager
def devices_hidden() -> Iterator[None]:
    """No card can be found inside, unless this process has opened one before."""
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
