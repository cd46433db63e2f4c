"""Memory models with a shape of our choosing, for tests that need no torch."""

from dataclasses import replace

from engine.estimate import gpus
from engine.estimate.batch_model import (
    ACTIVATIONS,
    GRADIENTS,
    PARAMETERS,
    WORKSPACES,
    BatchModel,
    MemoryBlock,
    Skeleton,
)
from engine.text.units import GIB, MIB

PARAMETER_BYTES, SAMPLE_BYTES = 64 * MIB, 16 * MIB


def model(parameter_bytes=PARAMETER_BYTES, sample_bytes=SAMPLE_BYTES):
    """Parameters, a workspace, activations that grow with the batch, then gradients in their place."""
    blocks = (
        MemoryBlock(PARAMETERS, None, "load"),
        MemoryBlock(ACTIVATIONS, "forward", "mm"),
        MemoryBlock(WORKSPACES, "forward", "mm"),
        MemoryBlock(GRADIENTS, "backward", "mm_backward"),
    )
    return BatchModel(
        skeleton=Skeleton(blocks, events=(0, 1, 2, 3, ~1), step_starts=(1,)),
        base_bytes=(parameter_bytes, 0, 0, parameter_bytes),
        per_sample_bytes=(0, sample_bytes, 0, 0),
        traced_batch_sizes=(3, 5),
        method="fake_cuda",
    )


def card(total_bytes=4 * GIB, **changes):
    return replace(gpus.of_memory(total_bytes), **changes)
