"""PURE: what a stack of many equal layers allocates, from traces of the same model with a few of them.

Three traces, one layer apart, show where the events of a layer repeat. The third has to be what the first two predict,
event by event and byte by byte. Otherwise `repeated` returns None, and every layer has to be traced.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..batch_model import BatchModel, MemoryBlock, Recording, Skeleton, SumBuffer, with_frees_in_order

FEWEST, MIDDLE, MOST = FEW = (2, 3, 4)
"""The layers of the three traces. In the second one a layer is neither the first nor the last."""
_NUMBER = re.compile(r"(?:^|(?<=\.))\d+(?=\.|$)")
"""The number of the layer in the path of a module: the first number."""


def names_a_layer(path: str) -> bool:
    return _NUMBER.search(path) is not None


class _NotEqual(Exception):
    """The traces are not of more and more equal layers."""


class _What(NamedTuple):
    """An allocation without what depends on the number of layers. Size None: it depends on it."""

    block: MemoryBlock
    sum_buffer: SumBuffer | None
    size_bytes: int | None


class _Token(NamedTuple):
    """What happens at an event: an allocation, or a free with the token of its allocation.

    `rank` is the freed block's place among the live ones of its token: from the newest 0, 1, ..., or the oldest -1, ...
    """

    step: int
    what: _What | int
    rank: int | None = None


@dataclass(frozen=True)
class _Trace:
    """The events of a recording: of each its token's number, the block, and the number of the layer, -1 for none."""

    recording: Recording
    tokens: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)


class _Place(NamedTuple):
    """An event of the deep model by its places in three traces. `copy` counts the layers that are more, from 1."""

    traces: tuple[_Trace, _Trace, _Trace]
    places: tuple[int, int, int]
    copy: int = 0

    def of_each(self, values: str) -> tuple[int, int, int]:
        first, second, third = (
            getattr(trace, values)[place] for trace, place in zip(self.traces, self.places, strict=True)
        )
        return first, second, third


@dataclass(frozen=True)
class Repeated:
    """A deep model's skeleton; which block of the trace of `MIDDLE` layers each block equals, but for more bytes."""

    skeleton: Skeleton
    blocks: tuple[int, ...]
    more_bytes: tuple[int, ...]
    sums: tuple[int, ...]

    def recording(self, of: Recording) -> Recording:
        sizes_bytes = self._bytes(of.sizes_bytes)
        return Recording(of.batch_size, self.skeleton, sizes_bytes, tuple(of.counts[index] for index in self.sums))

    def model(self, of: BatchModel) -> BatchModel | None:
        """Return the model of every batch size; None where what grows with the layers grows with the batch as well."""
        slopes = tuple(of.per_sample_bytes[index] for index in self.blocks)
        if any(slope and more for slope, more in zip(slopes, self.more_bytes, strict=True)):
            return None
        return replace(
            of,
            skeleton=self.skeleton,
            base_bytes=self._bytes(of.base_bytes),
            per_sample_bytes=slopes,
            base_counts=tuple(of.base_counts[index] for index in self.sums),
            per_sample_counts=tuple(of.per_sample_counts[index] for index in self.sums),
        )

    def _bytes(self, of: Sequence[int]) -> tuple[int, ...]:
        return tuple(of[index] + more for index, more in zip(self.blocks, self.more_bytes, strict=True))


def repeated(few: Sequence[Recording], layers: int) -> Repeated | None:
    """Return the model of so many layers from traces of `FEW`, the middle one the base; None where they disagree."""
    try:
        return _repeated(few, layers)
    except _NotEqual:
        return None


def _repeated(few: Sequence[Recording], layers: int) -> Repeated:
    numbers: dict[_Token, int] = {}
    allocations = [_allocations(recording) for recording in few]
    of_one_size = set.intersection(*map(set, allocations))
    first, second, third = (
        _read(recording, what, of_one_size, numbers) for recording, what in zip(few, allocations, strict=True)
    )
    tokens, middle = list(numbers), few[1]
    sums = {buffer.block: index for index, buffer in enumerate(middle.skeleton.sum_buffers)}
    counts = [_counts(recording) for recording in few]
    live: dict[int, list[int]] = defaultdict(list)
    blocks: list[MemoryBlock] = []
    events: list[int] = []
    starts: list[int] = []
    same, more_bytes, same_sums, sum_buffers = [], [], [], []
    for place in _aligned(first, second, third, layers - FEWEST):
        number = place.traces[0].tokens[place.places[0]]
        token = tokens[number]
        starts += [len(events)] * (token.step - len(starts))
        if not isinstance(token.what, _What):
            alike, rank = live[token.what], token.rank or 0
            if not -len(alike) <= -1 - rank < len(alike):
                raise _NotEqual
            events.append(~alike.pop(-1 - rank))
            continue
        of = place.of_each("blocks")
        equal = of[0] if place.copy else of[1]
        known = middle.skeleton.blocks[equal]
        layer = _layer(place, layers)
        module = known.module if layer < 0 or known.module is None else _NUMBER.sub(str(layer), known.module, count=1)
        if equal in sums:
            by_trace = {id(trace.recording): found for trace, found in zip((first, second, third), counts, strict=True)}
            found = {by_trace[id(t.recording)].get(block) for t, block in zip(place.traces, of, strict=True)}
            if len(found) > 1:
                raise _NotEqual
            same_sums.append(sums[equal])
            sum_buffers.append(middle.skeleton.sum_buffers[sums[equal]]._replace(block=len(blocks)))
        live[number].append(len(blocks))
        events.append(len(blocks))
        blocks.append(known._replace(module=module))
        same.append(equal)
        more_bytes.append(_more_bytes(place, of) * (layers - MIDDLE))
    in_order = with_frees_in_order(events, starts)
    skeleton = Skeleton(tuple(blocks), tuple(in_order), tuple(starts), tuple(sum_buffers))
    return Repeated(skeleton, tuple(same), tuple(more_bytes), tuple(same_sums))


def _allocations(recording: Recording) -> list[_What]:
    sums = {buffer.block: buffer._replace(block=0) for buffer in recording.skeleton.sum_buffers}
    found = []
    for index, (block, size_bytes) in enumerate(zip(recording.skeleton.blocks, recording.sizes_bytes, strict=True)):
        module = block.module and _NUMBER.sub("*", block.module, count=1)
        found.append(_What(block._replace(module=module), sums.get(index), size_bytes))
    return found


def _counts(recording: Recording) -> dict[int, tuple[int, int]]:
    blocks = (buffer.block for buffer in recording.skeleton.sum_buffers)
    return dict(zip(blocks, recording.counts, strict=True))


def _read(
    recording: Recording, allocations: Sequence[_What], of_one_size: set[_What], numbers: dict[_Token, int]
) -> _Trace:
    """Return the tokens of the events, each with its size where all three traces have the same."""
    skeleton, starts = recording.skeleton, frozenset(recording.skeleton.step_starts)
    trace, step = _Trace(recording), 0
    live: dict[int, list[int]] = defaultdict(list)
    token_of: dict[int, int] = {}
    for position, event in enumerate(skeleton.events):
        step += position in starts
        index = event if event >= 0 else ~event
        if event >= 0:
            what = allocations[index]
            token = _Token(step, what if what in of_one_size else what._replace(size_bytes=None))
            number = token_of[index] = numbers.setdefault(token, len(numbers))
            live[number].append(index)
        else:
            alike = live[token_of[index]]
            oldest = alike.index(index)
            newest = len(alike) - 1 - oldest
            del alike[oldest]
            token = _Token(step, token_of[index], newest if newest <= oldest else -1 - oldest)
            number = numbers.setdefault(token, len(numbers))
        path = skeleton.blocks[index].module
        layer = _NUMBER.search(path) if path else None
        trace.tokens.append(number)
        trace.blocks.append(index)
        trace.layers.append(int(layer[0]) if layer else -1)
    return trace


def _aligned(first: _Trace, second: _Trace, third: _Trace, more: int) -> Iterator[_Place]:
    a, b, c = first.tokens, second.tokens, third.tokens
    i = j = k = 0
    while True:
        while i < len(a) and j < len(b) and k < len(c) and a[i] == b[j] == c[k]:
            yield _Place((first, second, third), (i, j, k))
            i, j, k = i + 1, j + 1, k + 1
        if i == len(a) and j == len(b) and k == len(c):
            return
        size = _layer_events(a[i : i + 1], b[j:], c[k:])
        for copy in range(1, more + 1):
            for at in range(size):
                yield _Place((second, third, third), (j + at, k + at, k + size + at), copy)
        j, k = j + size, k + 2 * size


def _layer_events(next_: list[int], b: list[int], c: list[int]) -> int:
    """Return how many events one layer adds before the next event: once to the second trace, twice to the third."""
    for size in range(1, min(len(b), len(c) // 2) + 1):
        is_followed = b[size : size + 1] == next_ == c[2 * size : 2 * size + 1]
        if is_followed and b[:size] == c[:size] == c[size : 2 * size]:
            return size
    raise _NotEqual


def _more_bytes(place: _Place, blocks: tuple[int, int, int]) -> int:
    """Return the bytes by which a block grows with each layer: what is added with a layer must not."""
    first, second, third = (
        trace.recording.sizes_bytes[block] for trace, block in zip(place.traces, blocks, strict=True)
    )
    if second - first != third - second or (place.copy and first != second):
        raise _NotEqual
    return second - first


def _layer(place: _Place, layers: int) -> int:
    """Return the number of the layer at an event; -1 for none. It rises or falls with the layers and the copies."""
    first, second, third = place.of_each("layers")
    if place.copy:
        return first + (second - first) * (layers - MIDDLE) + (third - second) * (place.copy - 1)
    if second - first != third - second:
        raise _NotEqual
    return first + (second - first) * (layers - FEWEST)
