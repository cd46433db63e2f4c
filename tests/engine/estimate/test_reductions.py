"""Buffers of sums: as large as PyTorch's allocator was asked for, on the CUDA stand-in with an A100's processors."""

import pytest
import torch

from engine.estimate.gpus import find, gpus
from engine.estimate.tracing.reductions import Processors, buffer_bytes, reduction_of

A100 = Processors(108, 2048)


def buffer_of(tensor, *reduced):
    return buffer_bytes(reduction_of(tensor.shape, tensor.stride(), reduced, tensor.element_size()), A100)


def empty(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")


@pytest.mark.parametrize(
    ("rows", "columns", "asked_bytes"),
    [
        (384, 768, 0),
        (1024, 768, 6_291_456),
        (1024, 1000, 8_192_000),
        (4096, 768, 25_165_824),
        (4096, 3072, 100_663_296),
        (8192, 1000, 65_536_000),
        (8192, 2, 0),
        (16384, 1000, 110_592_000),
        (38400, 768, 113_246_208),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sum_over_rows_takes_what_torch_asked_for(rows, columns, asked_bytes, dtype):
    assert buffer_of(empty(rows, columns, dtype=dtype), 0) == asked_bytes


def test_leading_dimensions_that_are_summed_count_as_rows():
    assert buffer_of(empty(32, 128, 768), 0, 1) == buffer_of(empty(4096, 768), 0)


def test_a_sum_with_many_results_takes_no_buffer():
    assert buffer_of(empty(32, 128, 768), 0) == 0  # the gradient of an embedding of positions


def test_a_sum_of_neighbours_leaves_one_part_for_each_block():
    assert 0 < buffer_of(empty(4_000_000), 0) < 1_000_000


def test_a_sum_of_one_row_is_none():
    assert reduction_of((1, 768), (768, 1), (0,), 4) is None


def test_a_card_with_fewer_processors_takes_less():
    sum_ = reduction_of((38400, 768), (768, 1), (0,), 4)
    taken = [buffer_bytes(sum_, find(gpu).processors) for gpu in ("t4", "a10", "a100-40gb", "h100-80gb")]
    assert taken == sorted(taken)
    assert len(set(taken)) == 4


def test_every_nvidia_card_says_how_many_processors_it_has():
    unknown = {card.id for card in gpus().values() if card.processors is None}
    assert unknown == {card.id for card in gpus().values() if card.vendor != "nvidia"}
