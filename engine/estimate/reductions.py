"""PURE: the buffer that a sum needs on a card when several blocks of threads share the work for one result.

`sum` over the rows of a matrix (the gradient of every bias) has few results and many rows: each block of threads writes
its part to a buffer, 108 MiB on an A100. No operator returns it, so a trace cannot see it.

The rules are those of `setReduceConfig` and `global_memory_size` in torch 2.13, `aten/src/ATen/native/cuda/Reduce.cuh`,
for NVIDIA; ROCm has others. Seen on a stand-in for the driver: equal to the real allocator's requests in 126
of 126 sums. Known limits: operands beyond 2 GiB are summed in parts, each with a separate buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

MOST_THREADS, WARP = 512, 32
LEAST_VALUES, MOST_VALUES = 16, 256
"""Values per thread: from LEAST_VALUES on a block's threads share a result, from MOST_VALUES on several blocks do."""
VECTOR = 4
"""Results (or inputs, where those are contiguous) that a thread handles at once; fewer where their number is odd."""
VECTORIZED_FROM = 128


@dataclass(frozen=True, slots=True)
class Processors:
    """How many threads of a card run at once: `count` multiprocessors with `threads_each`."""

    count: int
    threads_each: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """One sum: `results` of `inputs` each. `is_inner`: the inputs of a result are contiguous in memory."""

    results: int
    inputs: int
    is_inner: bool
    vector: int
    accumulator_bytes: int


def buffer_bytes(sum_: Reduction, processors: Processors) -> int:
    """Return the bytes needed in addition to the result; 0 where a single block of threads computes each result."""
    width, height = _block(sum_)
    threads = width * height
    inputs_step, results_step = (width, 1) if sum_.is_inner else (1, width)
    is_shared = _up(sum_.inputs, inputs_step) >= min(height * LEAST_VALUES, MOST_VALUES)
    if not is_shared:
        return 0
    values = _up(sum_.inputs, inputs_step * height)
    blocks = _up(sum_.results // sum_.vector, results_step)
    most_blocks = processors.count * (processors.threads_each // threads)
    if values < MOST_VALUES or blocks > most_blocks:
        return 0
    parts = max(min(_up(most_blocks, blocks), _up(values, LEAST_VALUES)), _up(values, MOST_VALUES))
    if parts == 1:
        return 0
    return sum_.accumulator_bytes * sum_.results * parts * (1 if sum_.is_inner else width * sum_.vector)


def _block(sum_: Reduction) -> tuple[int, int]:
    most = MOST_THREADS // sum_.vector
    inputs = sum_.inputs // VECTOR if sum_.is_inner and sum_.inputs > VECTORIZED_FROM else sum_.inputs
    across, down = (inputs, sum_.results) if sum_.is_inner else (sum_.results // sum_.vector, inputs)
    across, down = min(_power_of_two(across), most), min(_power_of_two(down), most)
    width = min(across, WARP)
    height = min(down, most // width)
    return min(across, most // height), height


def reduction_of(
    shape: Sequence[int], strides: Sequence[int], reduced: Sequence[int], element_bytes: int
) -> Reduction | None:
    """Return the sum of a tensor of this layout over the `reduced` dimensions; None where it sums nothing."""
    dims = sorted((d for d in range(len(shape)) if shape[d] > 1), key=lambda d: (strides[d], d))
    inner = [d for d in dims if d % len(shape) in {r % len(shape) for r in reduced}]
    outer = [d for d in dims if d not in inner]
    if not inner:
        return None
    is_inner = not outer or strides[inner[0]] < strides[outer[0]]
    results, inputs = prod(shape[d] for d in outer), prod(shape[d] for d in inner)
    vector = 1 if is_inner or strides[outer[0]] != 1 else _vector(shape, strides, inner, outer)
    return Reduction(results, inputs, is_inner, vector, max(element_bytes, 4))  # halves are summed in full precision


def _vector(shape: Sequence[int], strides: Sequence[int], inner: list[int], outer: list[int]) -> int:
    """Return how many results a thread computes at once: every stride must be a multiple of that."""
    side_by_side, rest = shape[outer[0]], list(outer[1:])
    while rest and strides[rest[0]] == side_by_side:
        side_by_side *= shape[rest.pop(0)]
    vector = VECTOR
    for step in (side_by_side, *(strides[d] for d in (*inner, *rest))):
        while step % vector:
            vector //= 2
    return vector


def _power_of_two(number: int) -> int:
    return 1 << max(number.bit_length() - 1, 0)


def _up(number: int, by: int) -> int:
    return -(-number // by)
