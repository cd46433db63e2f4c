"""The memory that a convolution on the CPU takes and frees while it runs. PURE but for the tensors' sizes.

oneDNN copies operands into its own layout, and the result out of it, in blocks that no operator returns. Seen on
x86-64 in the events of real steps; scratch space of some hundred KB that depends on the shape is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

FORWARD, BACKWARD = "aten::convolution", "aten::convolution_backward"
OPERATORS = frozenset({FORWARD, BACKWARD})
IMAGE_CHANNELS, FULL_PRECISION_BYTES = 3, 4


@dataclass(frozen=True, slots=True)
class Copies:
    """Bytes of the blocks that are live while one result is computed, and while it is copied out."""

    computing: list[int]
    leaving: list[int]


def copies(operator: str, operands: tuple[Tensor, ...], number: int, result: Tensor) -> Copies:
    """Return the copies for the `number`-th result of `operator`. A bias gradient has none."""
    image, weight = operands[:2] if operator == FORWARD else operands[1:3]
    is_half = image.element_size() < FULL_PRECISION_BYTES
    is_weight_gradient = operator == BACKWARD and number == 1
    if operator == FORWARD:
        computing = [*_copied(image), weight.nbytes]
    elif number == 0:
        computing = [operands[0].nbytes, weight.nbytes]
    elif is_weight_gradient:
        computing = [operands[0].nbytes, *_copied(image)]
    else:
        return Copies([], [])
    if is_half and is_weight_gradient:
        computing.append(result.numel() * FULL_PRECISION_BYTES)  # summed in full precision
    return Copies([*computing, result.nbytes], [result.nbytes] * (2 if is_half and not is_weight_gradient else 1))


def _copied(image: Tensor) -> list[int]:
    """Return the bytes copied of an image: none in full precision with three channels, which is read in place."""
    is_copied = image.shape[1] > IMAGE_CHANNELS or image.element_size() < FULL_PRECISION_BYTES
    return [image.nbytes] if is_copied else []
