"""Activation checkpointing: store the input of a block, and compute the rest again in the backward pass. Needs torch.

Models of transformers and diffusers implement it. For others each repeated block of the network is checkpointed: a
residual block of a convolutional network or an encoder block of a vision transformer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from ..errors import SpecError

_NAMES = ("activation_checkpointing_enable", "gradient_checkpointing_enable", "enable_gradient_checkpointing")
"""Methods that enable it: the first since transformers 5.23, the last in diffusers, which is never reentrant."""
_BLOCKS = {
    "BasicBlock",  # ResNet
    "Bottleneck",
    "ResNetBottleNeckLayer",  # ResNet in transformers, which does not checkpoint it
    "CNBlock",  # ConvNeXt
    "MBConv",  # EfficientNet
    "InvertedResidual",  # MobileNet
    "EncoderBlock",  # ViT
    "SwinTransformerBlock",
}


def enable_checkpointing(model: nn.Module) -> None:
    """Make `model` checkpoint its blocks. Raises SpecError where it has no known block."""
    enable: Any = next((getattr(model, name) for name in _NAMES if hasattr(model, name)), None)
    if enable is not None and getattr(model, "supports_gradient_checkpointing", True):
        enable(*([] if enable.__name__ == _NAMES[-1] else [{"use_reentrant": False}]))
        return
    blocks = [module for module in model.modules() if type(module).__name__ in _BLOCKS]
    if not blocks:
        raise SpecError("gradient_checkpointing", f"{type(model).__name__} of the installed version has none")
    for block in blocks:
        # only forward is replaced, so names of weights and hooks of the block do not change
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
