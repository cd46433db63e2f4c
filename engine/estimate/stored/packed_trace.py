"""PURE: a stored trace as bytes, in columns: layers are alike, so that a compressed column is small."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from ..attention_family import Family
from ..batch_model import BatchModel, Counts, MemoryBlock, Skeleton, SumBuffer
from ..replay import Outcomes
from ..types import Method

Versions = dict[str, str | None]
_INDEX, _BYTES = "I", "q"
"""Types of the columns: numbers of names and of events, and sizes."""


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """What the steps allocate on cards of these families, by these versions, and what replays of it found so far."""

    families: tuple[Family, ...]
    versions: Versions
    model: BatchModel
    outcomes: Outcomes = field(default_factory=Outcomes)


@dataclass(frozen=True, slots=True)
class _Columns:
    """A trace whose blocks are columns: `kinds` to `modules` number the `names`.

    An event 0 allocates the next block, and n frees the block that was allocated n before the next one.
    """

    families: tuple[Family, ...]
    versions: Versions
    outcomes: Outcomes
    method: Method
    traced_batch_sizes: tuple[int, ...]
    step_starts: tuple[int, ...]
    sum_buffers: tuple[SumBuffer, ...]
    base_counts: Counts
    per_sample_counts: Counts
    names: tuple[str | None, ...]
    kinds: bytes
    phases: bytes
    operators: bytes
    modules: bytes
    streams: bytes
    events: bytes
    base_bytes: bytes
    per_sample_bytes: bytes


def packed(traces: Iterable[StoredTrace]) -> bytes:
    import msgspec  # here: `python -m engine --help` need not wait for it

    return msgspec.msgpack.encode([_columns_of(each) for each in traces])


@lru_cache(2)  # a file has the traces of several families, which an estimate asks for one after the other
def unpacked(content: bytes | None) -> tuple[StoredTrace, ...]:
    """Read the traces of a file; none where it is not there, damaged or of another form."""
    import msgspec

    if content is None:
        return ()
    with suppress(msgspec.MsgspecError, ValueError, IndexError):
        return tuple(_trace_of(each) for each in msgspec.msgpack.decode(content, type=list[_Columns]))
    return ()


def _columns_of(trace: StoredTrace) -> _Columns:
    model, skeleton = trace.model, trace.model.skeleton
    blocks = skeleton.blocks
    parts = tuple(zip(*blocks, strict=True))
    names: tuple[str | None, ...] = tuple(dict.fromkeys(chain(*parts[:4])))
    number = {name: index for index, name in enumerate(names)}
    kinds, phases, operators, modules = (_column(_INDEX, (number[name] for name in part)) for part in parts[:4])
    return _Columns(
        trace.families,
        trace.versions,
        trace.outcomes,
        model.method,
        model.traced_batch_sizes,
        skeleton.step_starts,
        skeleton.sum_buffers,
        model.base_counts,
        model.per_sample_counts,
        names,
        kinds,
        phases,
        operators,
        modules,
        _column(_INDEX, (block.stream for block in blocks)),
        _column(_INDEX, _relative(skeleton.events)),
        _column(_BYTES, model.base_bytes),
        _column(_BYTES, model.per_sample_bytes),
    )


def _trace_of(columns: _Columns) -> StoredTrace:
    names = columns.names
    named = [
        [names[index] for index in _values(_INDEX, column)]
        for column in (columns.kinds, columns.phases, columns.operators, columns.modules)
    ]
    blocks = tuple(map(MemoryBlock, *named, _values(_INDEX, columns.streams)))
    events = tuple(_absolute(_values(_INDEX, columns.events)))
    model = BatchModel(
        Skeleton(blocks, events, columns.step_starts, columns.sum_buffers),
        tuple(_values(_BYTES, columns.base_bytes)),
        tuple(_values(_BYTES, columns.per_sample_bytes)),
        columns.traced_batch_sizes,
        columns.method,
        base_counts=columns.base_counts,
        per_sample_counts=columns.per_sample_counts,
    )
    return StoredTrace(columns.families, columns.versions, model, columns.outcomes)


def _relative(events: Sequence[int]) -> Iterable[int]:
    """Return 0 for each allocation, and for a free how many blocks ago its own was allocated."""
    following = 0
    for event in events:
        if event >= 0:
            following += 1
            yield 0
        else:
            yield following - ~event


def _absolute(events: Iterable[int]) -> Iterable[int]:
    following = 0
    for event in events:
        if event:
            yield ~(following - event)
        else:
            yield following
            following += 1


def _column(kind: str, values: Iterable[int]) -> bytes:
    column = array(kind, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _values(kind: str, content: bytes) -> array[int]:
    column = array(kind)
    column.frombytes(content)
    if sys.byteorder == "big":
        column.byteswap()
    return column
