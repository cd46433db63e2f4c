"""The settings of a RunSpec as options of a command line: the same words for measuring and for estimating."""

from __future__ import annotations

import argparse

from ..spec import MODES, OPTIMIZERS, PRECISIONS


def add_settings(parser: argparse.ArgumentParser) -> None:
    """How the model is trained, and on what shapes."""
    add = parser.add_argument
    add("--precision", help=" ".join(PRECISIONS))
    add("--optimizer", help=" ".join(OPTIMIZERS))
    add("--mode", help=" ".join(MODES))
    add("--gradient-checkpointing", action="store_true", default=None, help="recompute activations in backward")
    add("--sequence-length", type=int, metavar="TOKENS")
    add("--image-size", type=int, metavar="PIXELS")
    add("--pretrained", action="store_true", default=None, help="the hub's weights instead of random ones")
    add("--current-batch-size", type=int, metavar="N", help="what you train with today (16)")
