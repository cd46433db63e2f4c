"""PURE: the caching allocator of a training that requests memory in several streams, as FSDP2 does."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .allocator import Allocator, make_pools


class StreamAllocator(Allocator):
    """An allocator that keeps free blocks by stream (`BlockPool`, torch 2.13). `streams` has each block's."""

    def __init__(
        self, streams: Sequence[int], *, limit_bytes: int | None = None, expandable_segments: bool = False
    ) -> None:
        super().__init__(limit_bytes=limit_bytes, expandable_segments=expandable_segments)
        self._streams = streams
        self._pools = {stream: make_pools(expandable_segments) for stream in sorted({0, *streams})}

    def allocate(self, key: Hashable, size_bytes: int) -> None:
        self._enter(key)
        super().allocate(key, size_bytes)

    def free(self, key: Hashable) -> None:
        self._enter(key)
        super().free(key)

    def play(self, events: Sequence[int], sizes_bytes: Sequence[int], taken_bytes: list[int]) -> None:
        self._play_one_by_one(events, sizes_bytes, taken_bytes)

    def empty_cache(self) -> None:
        self.reserved_bytes -= sum(large.release() + small.release() for small, large in self._pools.values())

    def _enter(self, key: Hashable) -> None:
        assert isinstance(key, int)
        self._small, self._large = self._pools[self._streams[key]]
