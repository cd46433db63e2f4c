"""A simulation of PyTorch's CUDA caching allocator, one stream. PURE: integers in, integers out.

`stream_allocator` has one of several streams.

The rules were read in torch 2.13.0 (`c10/core/AllocatorConfig.h`, `c10/cuda/CUDACachingAllocator.cpp`); those of
torch 2.6 to 2.12 are the same. In the C++ file: `round_size`, `get_pool`, `get_allocation_size`, `get_free_block`,
`should_split`, `alloc_block`, `try_merge_blocks`, `release_blocks`, and for expandable segments
`find_expandable_block`, `map_block`, `unmap_block`.

    every request        rounds up to 512 B; up to 1 MiB comes from the small pool, more from the large one
    a new segment        2 MiB (small pool), 20 MiB (below 10 MiB), else the request rounded up to 2 MiB
    the choice           best fit by (size, address); the block is split if 512 B or more (small pool) or more
                         than 1 MiB (large pool) would be left; an unsplit block counts whole as allocated
    a free               merges with free neighbours of its segment; the segment stays reserved
    out of memory        gives back every segment that is wholly free, tries once more, then refuses
    expandable segments  one endless address range per pool, mapped in pages of 2 MiB (small) and 20 MiB (large) at
                         the lowest address with room; any remainder is split off; wholly free pages are given back

Known limits. Settings of PYTORCH_ALLOC_CONF other than expandable_segments are taken at their defaults. Segments get
rising addresses, where the driver may hand a freed one out again: that decides only between free blocks of equal
size. Under a limit, expandable segments are refused where either of two checks says no: the one of
`set_per_process_memory_fraction` (which looks at the size a plain segment would have) or the pages really needed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Sequence

from ..text.units import MIB

BLOCK_BYTES = 512
SMALL_REQUEST_BYTES = 1 * MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
OWN_SEGMENT_BYTES = 10 * MIB
"""From this size on a request gets a separate segment."""
ROUND_LARGE_BYTES = 2 * MIB

# An entry of the list of free blocks is one integer, size above address: it sorts as (size, address) would, and
# bisection over integers takes half the time of one over tuples. A replay is thousands of these.
_ADDRESS_BITS = 52
_ADDRESS_MASK = (1 << _ADDRESS_BITS) - 1
_LARGE_POOL_ADDRESS = LARGE_SEGMENT_BYTES << 26  # a multiple of the page; far above all small segments
_ENDLESS_BYTES = LARGE_SEGMENT_BYTES << 25
_GAP_BYTES = 2 * MIB  # between segments, so that blocks of two segments are never neighbours


class OutOfMemory(Exception):
    """The limit is reached, even after every cached segment was released."""

    def __init__(self, requested_bytes: int, allocator: Allocator) -> None:
        super().__init__(
            f"tried to allocate {requested_bytes} bytes; {allocator.reserved_bytes} are reserved, "
            f"{allocator.allocated_bytes} of them allocated; the limit is {allocator.limit_bytes}"
        )


def rounded(size_bytes: int) -> int:
    """Round 1 up to 512, 512 to 512, 513 to 1024."""
    return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES


def segment_bytes(block_bytes: int) -> int:
    """Return how many bytes are requested from the driver when no free block can hold `block_bytes`."""
    if block_bytes <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if block_bytes < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-block_bytes // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES


class _Pool:
    """The free blocks of one pool and the segments they are cut from."""

    __slots__ = ("by_size", "least_remainder_bytes", "next_address", "segments", "size_at", "start_of")

    def __init__(self, address: int, least_remainder_bytes: int) -> None:
        self.least_remainder_bytes = least_remainder_bytes
        self.next_address = address
        self.by_size: list[int] = []
        self.size_at: dict[int, int] = {}
        """Start of a free block -> its size."""
        self.start_of: dict[int, int] = {}
        """End of a free block -> its start."""
        self.segments: dict[int, int] = {}

    def take(self, size: int) -> tuple[int, int] | None:
        """Take the best fitting block and return its address and size; None if no block can hold `size`."""
        index = bisect_left(self.by_size, size << _ADDRESS_BITS)
        if index == len(self.by_size):
            return None
        entry = self.by_size.pop(self.preferred(index))
        address, found = entry & _ADDRESS_MASK, entry >> _ADDRESS_BITS
        del self.size_at[address]
        remainder = found - size
        if remainder < self.least_remainder_bytes:
            del self.start_of[address + found]
            return address, found
        start = address + size
        self.size_at[start] = remainder
        self.start_of[address + found] = start
        insort(self.by_size, remainder << _ADDRESS_BITS | start)
        return address, size

    def preferred(self, index: int) -> int:
        return index

    def give(self, address: int, size: int) -> None:
        end = address + size
        before = self.start_of.pop(address, None)
        if before is not None:
            self._forget(before, self.size_at.pop(before))
            address = before
        after = self.size_at.pop(end, None)
        if after is not None:
            self._forget(end, after)
            end += after
        size = end - address
        self.size_at[address] = size
        self.start_of[end] = address
        insort(self.by_size, size << _ADDRESS_BITS | address)

    def _forget(self, address: int, size: int) -> None:
        del self.by_size[bisect_left(self.by_size, size << _ADDRESS_BITS | address)]

    def grow(self, size: int, room_bytes: int | None) -> int:
        """Reserve memory that can hold `size`, and return the bytes reserved; 0 if the room is too small."""
        wanted_bytes = segment_bytes(size)
        if room_bytes is not None and wanted_bytes > room_bytes:
            return 0
        self.segments[self.next_address] = wanted_bytes
        self.give(self.next_address, wanted_bytes)
        self.next_address += wanted_bytes + _GAP_BYTES
        return wanted_bytes

    def release(self) -> int:
        released = 0
        for address, size in list(self.size_at.items()):
            if self.segments.get(address) == size:
                self._remove(address, size)
                released += self.segments.pop(address)
        return released

    def _remove(self, address: int, size: int) -> None:
        del self.size_at[address]
        del self.start_of[address + size]
        self._forget(address, size)


class _ExpandablePool(_Pool):
    """A pool that is one address range, mapped page by page. `holes`: the unmapped parts, start -> size."""

    __slots__ = ("holes", "page_bytes")

    def __init__(self, address: int, page_bytes: int) -> None:
        super().__init__(address, BLOCK_BYTES)
        self.page_bytes = page_bytes
        self.holes = {address: _ENDLESS_BYTES}

    def preferred(self, index: int) -> int:
        """Choose by best fit. A block before a hole counts with the hole: the hole is left for an expandable block."""
        while index + 1 < len(self.by_size) and self._reach(index + 1) < self._reach(index):
            index += 1
        return index

    def _reach(self, index: int) -> int:
        address, size = self.by_size[index] & _ADDRESS_MASK, self.by_size[index] >> _ADDRESS_BITS
        return size + self.holes.get(address + size, 0)

    def grow(self, size: int, room_bytes: int | None) -> int:
        ranges = self._to_map(size)
        mapped = sum(length for _, length in ranges)
        if room_bytes is not None and max(mapped, segment_bytes(size)) > room_bytes:
            return 0
        for start, length in ranges:
            left = self.holes.pop(start) - length
            if left:
                self.holes[start + length] = left
            self.give(start, length)
        return mapped

    def _to_map(self, size: int) -> list[tuple[int, int]]:
        """Return the parts of holes to map: at the lowest address with room, counting free neighbours too."""
        for hole in sorted(self.holes):
            at, held, ranges = self.start_of.get(hole, hole), 0, []
            while held < size and (at in self.size_at or at in self.holes):
                length = self.size_at.get(at)
                if length is None:
                    pages = -(-(size - held) // self.page_bytes)
                    length = min(self.holes[at], pages * self.page_bytes)
                    ranges.append((at, length))
                at += length
                held += length
            if held >= size:
                return ranges
        raise AssertionError("the address range has no end")

    def release(self) -> int:
        """Unmap every page that lies within a free block, and return the bytes."""
        released = 0
        for address, size in list(self.size_at.items()):
            end = address + size
            first = -(-address // self.page_bytes) * self.page_bytes
            last = end // self.page_bytes * self.page_bytes
            if first < last:
                self._unmap(address, end, first, last)
                released += last - first
        self._join_holes()
        return released

    def _unmap(self, start: int, end: int, first: int, last: int) -> None:
        self._remove(start, end - start)
        self.holes[first] = last - first
        if start < first:
            self.give(start, first - start)
        if last < end:
            self.give(last, end - last)

    def _join_holes(self) -> None:
        joined: dict[int, int] = {}
        start = end = -1
        for at in sorted(self.holes):
            if at != end:
                start = at
            end = at + self.holes[at]
            joined[start] = end - start
        self.holes = joined


def make_pools(expandable_segments: bool) -> tuple[_Pool, _Pool]:
    if expandable_segments:
        return _ExpandablePool(0, SMALL_SEGMENT_BYTES), _ExpandablePool(_LARGE_POOL_ADDRESS, LARGE_SEGMENT_BYTES)
    return _Pool(0, BLOCK_BYTES), _Pool(_LARGE_POOL_ADDRESS, SMALL_REQUEST_BYTES + 1)


class Allocator:
    """What one process's allocator holds while its events are replayed, as `torch.cuda.memory_stats()` counts."""

    __slots__ = (
        "_large",
        "_live",
        "_small",
        "allocated_bytes",
        "limit_bytes",
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "requested_bytes",
        "reserved_bytes",
        "retries",
    )

    def __init__(self, *, limit_bytes: int | None = None, expandable_segments: bool = False) -> None:
        self.limit_bytes = limit_bytes
        self._small, self._large = make_pools(expandable_segments)
        self._live: dict[Hashable, tuple[int, int, int]] = {}
        self.allocated_bytes = self.reserved_bytes = self.requested_bytes = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = self.retries = 0

    def allocate(self, key: Hashable, size_bytes: int) -> None:
        """Allocate a block. Raises OutOfMemory. A size of 0 takes no memory, and can be freed like any other."""
        if key in self._live or size_bytes < 0:
            raise ValueError(f"{key!r} is live already" if key in self._live else f"{size_bytes} is no size")
        if size_bytes == 0:
            self._live[key] = (0, 0, 0)
            return
        block_bytes = (size_bytes + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES
        pool = self._small if block_bytes <= SMALL_REQUEST_BYTES else self._large
        block = pool.take(block_bytes) or self._reserve(pool, block_bytes)
        self._live[key] = (block[0], block[1], size_bytes)
        self.requested_bytes += size_bytes
        self.allocated_bytes += block[1]
        if self.allocated_bytes > self.peak_allocated_bytes:
            self.peak_allocated_bytes = self.allocated_bytes

    def free(self, key: Hashable) -> None:
        """Free a block. Raises ValueError if `key` is not live."""
        if key not in self._live:
            raise ValueError(f"{key!r} is not live")
        address, block_bytes, size_bytes = self._live.pop(key)
        if block_bytes == 0:
            return
        self.allocated_bytes -= block_bytes
        self.requested_bytes -= size_bytes
        # the blocks of the large pool are above the small pool's largest request, so the size identifies the pool
        (self._small if block_bytes <= SMALL_REQUEST_BYTES else self._large).give(address, block_bytes)

    def play(self, events: Sequence[int], sizes_bytes: Sequence[int], taken_bytes: list[int]) -> None:
        """Allocate block `event` for each event, or free block `~event`; note what each took. One loop, for speed."""
        if isinstance(self._small, _ExpandablePool):
            self._play_one_by_one(events, sizes_bytes, taken_bytes)
            return
        live, small, large = self._live, self._small, self._large
        allocated, peak = self.allocated_bytes, self.peak_allocated_bytes
        for event in events:
            if event < 0:
                address, block_bytes, _ = live.pop(~event)
                if not block_bytes:
                    continue
                allocated -= block_bytes
                pool = small if block_bytes <= SMALL_REQUEST_BYTES else large
                by_size, size_at, start_of = pool.by_size, pool.size_at, pool.start_of
                end = address + block_bytes
                before = start_of.pop(address, None)
                if before is not None:
                    del by_size[bisect_left(by_size, size_at.pop(before) << _ADDRESS_BITS | before)]
                    address = before
                after = size_at.pop(end, None)
                if after is not None:
                    del by_size[bisect_left(by_size, after << _ADDRESS_BITS | end)]
                    end += after
                size_at[address] = end - address
                start_of[end] = address
                insort(by_size, (end - address) << _ADDRESS_BITS | address)
                continue
            size_bytes = sizes_bytes[event]
            block_bytes = (size_bytes + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES
            if not block_bytes:
                live[event] = (0, 0, 0)
                continue
            pool = small if block_bytes <= SMALL_REQUEST_BYTES else large
            by_size = pool.by_size
            index = bisect_left(by_size, block_bytes << _ADDRESS_BITS)
            if index == len(by_size):
                self.allocated_bytes, self.peak_allocated_bytes = allocated, peak
                address, block_bytes = self._reserve(pool, block_bytes)
            else:
                entry = by_size.pop(index)
                address, found = entry & _ADDRESS_MASK, entry >> _ADDRESS_BITS
                del pool.size_at[address]
                remainder = found - block_bytes
                if remainder < pool.least_remainder_bytes:
                    del pool.start_of[address + found]
                    block_bytes = found
                else:
                    start = address + block_bytes
                    pool.size_at[start] = remainder
                    pool.start_of[address + found] = start
                    insort(by_size, remainder << _ADDRESS_BITS | start)
            live[event] = (address, block_bytes, size_bytes)
            taken_bytes[event] = block_bytes
            allocated += block_bytes
            if allocated > peak:
                peak = allocated
        self.allocated_bytes, self.peak_allocated_bytes = allocated, peak
        self.requested_bytes = sum(size for _, _, size in live.values())

    def _play_one_by_one(self, events: Sequence[int], sizes_bytes: Sequence[int], taken_bytes: list[int]) -> None:
        for event in events:
            if event < 0:
                self.free(~event)
                continue
            self.allocate(event, sizes_bytes[event])
            taken_bytes[event] = self._live[event][1]

    def empty_cache(self) -> None:
        self.reserved_bytes -= self._large.release() + self._small.release()

    def reset_peaks(self) -> None:
        self.peak_allocated_bytes, self.peak_reserved_bytes = self.allocated_bytes, self.reserved_bytes

    def live_blocks(self) -> Iterator[tuple[int, int]]:
        return ((address, size) for address, size, _ in self._live.values() if size)

    def _reserve(self, pool: _Pool, block_bytes: int) -> tuple[int, int]:
        """Return a block from newly reserved memory, after releasing cached segments if there is no room."""
        grown = pool.grow(block_bytes, self._room_bytes())
        if not grown:
            self.retries += 1
            self.empty_cache()
            grown = pool.grow(block_bytes, self._room_bytes())
        if not grown:
            raise OutOfMemory(block_bytes, self)
        self.reserved_bytes += grown
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        block = pool.take(block_bytes)
        assert block is not None
        return block

    def _room_bytes(self) -> int | None:
        return None if self.limit_bytes is None else self.limit_bytes - self.reserved_bytes
