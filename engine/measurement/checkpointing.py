"""Activation checkpointing: keep what enters a block, and compute the rest again in the backward pass. Needs torch.

Models of transformers and diffusers bring their own. Others have none: there each repeated block of the network is
checkpointed, a residual block of a convolutional network or an encoder block of a vision transformer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from ..errors import SpecError

_NAMES = ("activation_checkpointing_enable", "gradient_checkpointing_enable", "enable_gradient_checkpointing")
"""Named activation_checkpointing_enable since transformers 5.23; the last is diffusers', which is never reentrant."""
_BLOCKS = {
    "BasicBlock",  # ResNet
    "Bottleneck",
    "ResNetBottleNeckLayer",  # of transformers, which checkpoints none itself
    "CNBlock",  # ConvNeXt
    "MBConv",  # EfficientNet
    "InvertedResidual",  # MobileNet
    "EncoderBlock",  # ViT
    "SwinTransformerBlock",
}


def enable_checkpointing(model: nn.Module) -> None:
    """Have `model` checkpoint its blocks. Raises SpecError where nothing in it is known to be one."""
    enable: Any = next((getattr(model, name) for name in _NAMES if hasattr(model, name)), None)
    if enable is not None and getattr(model, "supports_gradient_checkpointing", True):
        enable(*([] if enable.__name__ == _NAMES[-1] else [{"use_reentrant": False}]))
        return
    blocks = [module for module in model.modules() if type(module).__name__ in _BLOCKS]
    if not blocks:
        raise SpecError("gradient_checkpointing", f"{type(model).__name__} of the installed version has none")
    for block in blocks:
        # only forward is replaced: names of weights and whatever hooks the block has stay as they are
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
