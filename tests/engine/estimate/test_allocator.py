"""The simulated caching allocator: golden cases by hand from its rules, any pattern, and PyTorch's buffers of sums."""

import random
import time
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.estimate.allocator import Allocator, OutOfMemory, rounded, segment_bytes
from engine.estimate.gpus import find, gpus
from engine.estimate.reductions import Processors, buffer_bytes, reduction_of
from engine.text.units import GIB, KIB, MIB

SIZES = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 3 * MIB),
    st.integers(1, 64 * MIB),
    st.sampled_from([0, 512, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB, 20 * MIB]),
)
# a size to allocate, None to empty the cache, or which of the live ones to free
EVENTS = st.lists(st.one_of(SIZES, st.none(), st.floats(0, 0.999)), max_size=120)
KINDS = pytest.mark.parametrize("is_expandable", [False, True], ids=["default", "expandable"])
LIMIT_BYTES = 150 * MIB


@pytest.mark.parametrize(
    ("asked_bytes", "block_bytes", "new_segment_bytes"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
        (33 * MIB, 33 * MIB, 34 * MIB),
    ],
)
def test_sizes_and_segments_are_rounded_as_in_the_rules(asked_bytes, block_bytes, new_segment_bytes):
    assert rounded(asked_bytes) == block_bytes
    assert segment_bytes(block_bytes) == new_segment_bytes


def test_small_requests_share_one_segment_of_2_mib():
    allocator = filled(100, MIB, 512)
    assert allocator.reserved_bytes == 2 * MIB
    assert allocator.allocated_bytes == 512 + MIB + 512
    assert allocator.requested_bytes == 100 + MIB + 512


def test_two_small_requests_of_1_mib_fill_a_segment_and_a_third_opens_another():
    assert filled(MIB, MIB).reserved_bytes == 2 * MIB
    assert filled(MIB, MIB, 1).reserved_bytes == 4 * MIB


def test_requests_below_10_mib_are_cut_from_a_buffer_of_20_mib():
    assert filled(9 * MIB, 9 * MIB).reserved_bytes == 20 * MIB
    assert filled(9 * MIB, 9 * MIB, 3 * MIB).reserved_bytes == 40 * MIB


def test_a_large_block_with_up_to_1_mib_left_is_not_split_and_counts_whole():
    allocator = filled(10 * MIB + 512)  # its segment has 12 MiB: 2 MiB less 512 B are split off
    assert allocator.allocated_bytes == 10 * MIB + 512
    allocator = filled(11 * MIB)  # 1 MiB would be left
    assert allocator.allocated_bytes == 12 * MIB
    assert allocator.requested_bytes == 11 * MIB


def test_the_smallest_free_block_that_is_large_enough_is_taken():
    allocator = filled(40 * MIB, 30 * MIB, 50 * MIB)
    allocator.free(0)
    allocator.free(1)
    allocator.free(2)
    allocator.allocate("new", 29 * MIB)
    assert allocator.allocated_bytes == 30 * MIB  # the one of 30 MiB, unsplit
    assert allocator.reserved_bytes == 120 * MIB


def test_free_neighbours_merge_so_that_a_larger_request_fits_again():
    allocator = filled(6 * MIB, 6 * MIB, 8 * MIB)
    for key in (0, 2, 1):
        allocator.free(key)
    allocator.allocate("new", 18 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


def test_out_of_memory_gives_back_what_is_cached_and_tries_once_more():
    allocator = Allocator(limit_bytes=100 * MIB)
    allocator.allocate("old", 80 * MIB)
    allocator.free("old")
    allocator.allocate("new", 90 * MIB)
    assert (allocator.retries, allocator.reserved_bytes, allocator.peak_reserved_bytes) == (1, 90 * MIB, 90 * MIB)


def test_a_split_segment_is_not_given_back_and_the_request_is_refused():
    allocator = Allocator(limit_bytes=100 * MIB)
    allocator.allocate("large", 60 * MIB)
    allocator.free("large")
    allocator.allocate("stays", 20 * MIB)  # cut from the 60 MiB
    with pytest.raises(OutOfMemory, match=rf"tried to allocate {50 * MIB} bytes; {60 * MIB} are reserved, {20 * MIB} "):
        allocator.allocate("more", 50 * MIB)
    assert allocator.retries == 1


def test_the_limit_is_on_reserved_bytes_to_the_byte():
    Allocator(limit_bytes=20 * MIB).allocate(0, 2 * MIB)
    with pytest.raises(OutOfMemory):
        Allocator(limit_bytes=20 * MIB - 1).allocate(0, 2 * MIB)


def test_expandable_segments_grow_by_pages_instead_of_opening_new_ones():
    allocator = filled(30 * MIB, 30 * MIB, is_expandable=True)
    assert allocator.reserved_bytes == 60 * MIB  # the first took 40, the second its last 10 and 20 more
    assert allocator.allocated_bytes == 60 * MIB
    assert filled(30 * MIB, 30 * MIB, 512, is_expandable=True).reserved_bytes == 62 * MIB


def test_expandable_segments_use_the_free_end_of_the_range_for_a_larger_request():
    allocator = filled(30 * MIB, is_expandable=True)
    allocator.free(0)
    allocator.allocate("larger", 50 * MIB)
    assert allocator.reserved_bytes == 60 * MIB


def test_expandable_segments_give_back_the_pages_that_are_wholly_free():
    allocator = filled(30 * MIB, 50 * MIB, 10 * MIB, is_expandable=True)
    assert allocator.reserved_bytes == 100 * MIB
    allocator.free(1)  # from 30 to 80 MiB: the pages from 40 to 80 are wholly free
    allocator.empty_cache()
    assert allocator.reserved_bytes == 60 * MIB
    allocator.allocate("again", 45 * MIB)  # the hole and the free part before it
    assert allocator.reserved_bytes == 100 * MIB


def test_expandable_segments_keep_the_block_before_the_hole_for_what_may_grow_into_it():
    allocator = filled(8 * MIB, 2 * MIB, 22 * MIB, 4 * MIB, is_expandable=True)  # 36 of 40 MiB; the last 4 are free
    allocator.free(0)
    allocator.allocate("small", 3 * MIB)  # fits the last 4 better by size, but those can grow
    starts = [start for start, _ in allocator.live_blocks()]
    assert starts[-1] == min(starts)
    allocator.allocate("large", 24 * MIB)
    assert allocator.reserved_bytes == 60 * MIB


def test_a_size_of_zero_takes_nothing_and_may_be_freed():
    allocator = filled(0)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 0)
    allocator.free(0)


def test_a_key_is_refused_when_it_is_live_already_or_not_live():
    allocator = filled(512)
    with pytest.raises(ValueError, match="0 is live already"):
        allocator.allocate(0, 512)
    allocator.free(0)
    with pytest.raises(ValueError, match="0 is not live"):
        allocator.free(0)


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="no size"):
        Allocator().allocate(0, -1)


def test_the_peaks_begin_again_from_what_is_held():
    allocator = filled(50 * MIB, 512)
    allocator.free(0)
    allocator.reset_peaks()
    assert (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes) == (512, 52 * MIB)


@KINDS
@given(events=EVENTS)
@settings(max_examples=70, deadline=None)
def test_what_is_reserved_holds_what_is_allocated_which_holds_what_was_asked(is_expandable, events):
    for allocator in replayed(events, is_expandable):
        assert allocator.reserved_bytes >= allocator.allocated_bytes >= allocator.requested_bytes >= 0
        assert allocator.peak_reserved_bytes >= allocator.reserved_bytes
        assert allocator.peak_allocated_bytes >= allocator.allocated_bytes


@KINDS
@given(events=EVENTS)
@settings(max_examples=70, deadline=None)
def test_live_blocks_never_overlap_and_add_up_to_what_is_allocated(is_expandable, events):
    for allocator in replayed(events, is_expandable):
        blocks = sorted(allocator.live_blocks())
        assert all(start + size <= following for (start, size), (following, _) in pairwise(blocks))
        assert sum(size for _, size in blocks) == allocator.allocated_bytes


@KINDS
@given(events=EVENTS)
@settings(max_examples=70, deadline=None)
def test_the_limit_is_never_exceeded(is_expandable, events):
    for allocator in replayed(events, is_expandable, LIMIT_BYTES):
        assert allocator.peak_reserved_bytes <= LIMIT_BYTES


@KINDS
@given(events=EVENTS)
@settings(max_examples=70, deadline=None)
def test_nothing_is_held_after_everything_is_freed_and_the_cache_emptied(is_expandable, events):
    live: set[int] = set()
    last = [Allocator(), *replayed(events, is_expandable, live=live)][-1]
    for key in live:
        last.free(key)
    last.empty_cache()
    assert (last.reserved_bytes, last.allocated_bytes, last.requested_bytes) == (0, 0, 0)


@KINDS
@given(events=EVENTS)
@settings(max_examples=30, deadline=None)
def test_the_same_events_give_the_same_figures(is_expandable, events):
    assert figures(events, is_expandable) == figures(events, is_expandable)


def test_replaying_7000_events_takes_milliseconds():
    sizes = random.Random(7).choices([512, 12 * KIB, MIB, 3 * MIB, 12 * MIB, 48 * MIB], k=3500)

    def replay_seconds() -> float:
        allocator, started = Allocator(), time.process_time()
        for key, size in enumerate(sizes):
            allocator.allocate(key, size)
            if key >= 300:
                allocator.free(key - 300)
        for key in range(len(sizes) - 300, len(sizes)):
            allocator.free(key)
        return time.process_time() - started

    assert min(replay_seconds() for _ in range(5)) < 0.05  # 0.015 is asked for; the machine may be busy


@KINDS
@given(events=EVENTS)
@settings(max_examples=60, deadline=None)
def test_events_played_at_once_leave_what_they_leave_one_by_one(is_expandable, events):
    sizes = [event if isinstance(event, int) else 0 for event in events]
    order, live = [], []
    for index, event in enumerate(events):
        if isinstance(event, int):
            order.append(index)
            live.append(index)
        elif event is not None and live:
            order.append(~live.pop(int(event * len(live))))
    at_once, one_by_one = (Allocator(limit_bytes=LIMIT_BYTES, expandable_segments=is_expandable) for _ in range(2))
    taken, refused = [0] * len(sizes), [False, False]
    try:
        at_once.play(order, sizes, taken)
    except OutOfMemory:
        refused[0] = True
    try:
        for event in order:
            before = one_by_one.allocated_bytes
            one_by_one.allocate(event, sizes[event]) if event >= 0 else one_by_one.free(~event)
            assert event < 0 or taken[event] == one_by_one.allocated_bytes - before
    except OutOfMemory:
        refused[1] = True
    assert refused[0] == refused[1]
    for name in ("allocated_bytes", "reserved_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "retries"):
        assert getattr(at_once, name) == getattr(one_by_one, name), name
    assert list(at_once.live_blocks()) == list(one_by_one.live_blocks())
    assert refused[0] or at_once.requested_bytes == one_by_one.requested_bytes


def filled(*sizes: int, is_expandable: bool = False) -> Allocator:
    """One that holds blocks of these sizes, with the keys 0, 1, 2, ..."""
    allocator = Allocator(limit_bytes=4 * GIB, expandable_segments=is_expandable)
    for key, size in enumerate(sizes):
        allocator.allocate(key, size)
    return allocator


def replayed(events, is_expandable, limit_bytes=None, live=None):
    """The allocator after each event. What does not fit is left out, as a caller that catches the error would."""
    allocator = Allocator(limit_bytes=limit_bytes, expandable_segments=is_expandable)
    live = set() if live is None else live
    for key, event in enumerate(events):
        if event is None:
            allocator.empty_cache()
        elif isinstance(event, float):
            if live:
                freed = sorted(live)[int(event * len(live))]
                live.remove(freed)
                allocator.free(freed)
        else:
            try:
                allocator.allocate(key, event)
            except OutOfMemory:
                continue
            live.add(key)
        yield allocator


def figures(events, is_expandable):
    return [
        (a.allocated_bytes, a.reserved_bytes, a.retries, tuple(a.live_blocks()))
        for a in replayed(events, is_expandable, LIMIT_BYTES)
    ]


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
