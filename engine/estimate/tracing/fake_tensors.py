"""Fake tensors like torch's, but faster: caches what an operator returns for tensors of a layout. Needs torch.

The trace of a large model is a hundred thousand operators on a few hundred layouts. Torch caches results too, but its
keys hold all that a compiler needs (symbols, sparse tensors), which took most of a trace's time, and it never caches
results of other libraries' operators. A result is cached here only if one made from the cache equals it in every
property of a tensor without data. All else is left to torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves

_PLAIN = frozenset({bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})
"""Types of arguments that go into the key unchanged."""


@dataclass(frozen=True, slots=True)
class _TensorLayout:
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    offset: Any
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class _Result:
    """One result: a tensor of this layout, in the memory of an argument if one is named; that argument; or a value."""

    argument: int | None = None
    layout: _TensorLayout | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class _Notes:
    """What an operator returned. `parts` None: it runs each time."""

    parts: tuple[_Result, ...] | None
    is_tuple: bool


class FakeTensors(FakeTensorMode):
    """The mode in which tensors have no data. Enter it around all code that creates and uses them."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self._notes: dict[tuple[Any, ...], _Notes] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # there is nothing to compile, and the wrapper that would prevent it takes as long as a look-up

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        key = self._key(func, args, kwargs)
        notes = None if key is None else self._notes.get(key)
        if notes is not None and notes.parts is not None:
            made = tuple(self._made(part, args) for part in notes.parts)
            return made if notes.is_tuple else made[0]
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if key is not None and notes is None:
            self._notes[key] = self._noted(func, args, kwargs, result)
        return result

    def _key(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
        """Return the key of a call; None where the result may depend on more than layouts and plain values."""
        key = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        if not self._describe(args, key) or (kwargs and not self._describe([*kwargs, *kwargs.values()], key)):
            return None
        return tuple(key)

    def _describe(self, values: Iterable[Any], key: list[Any]) -> bool:
        """Add `values` to the key. False where one has no description: a tensor with data, a complex one, ..."""
        for value in values:
            kind = type(value)
            if kind is FakeTensor:
                dtype = value.dtype
                if value.constant is not None or value.layout is not torch.strided or dtype.is_complex:
                    return False
                if value.fake_mode is not self or value.is_neg():
                    return False
                size_bytes = value.untyped_storage().nbytes()
                key += (dtype, value.shape, value.stride(), value.storage_offset(), size_bytes)
                key += (value.fake_device, value.requires_grad)
            elif kind in _PLAIN:
                key += (kind, value)  # with the type, because 1, 1.0 and True are equal
            elif kind is tuple or kind is list:
                key += (kind, len(value))
                if not self._describe(value, key):
                    return False
            else:
                return False
        return True

    def _made(self, part: _Result, args: Any) -> Any:
        """Create a result from the cache."""
        source: Any = part.value if part.argument is None else args[part.argument]
        layout = part.layout
        if layout is None:
            return source
        made = torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype, device="meta")
        if source is not None:
            made.set_(source.untyped_storage(), layout.offset, layout.shape, layout.stride)
        return FakeTensor(self, made, layout.device)

    def _noted(self, func: Any, args: Any, kwargs: Any, result: Any) -> _Notes:
        """Return what such results can be created from."""
        is_tuple = type(result) is tuple
        results = result if is_tuple else (result,)
        parts = [self._noted_part(one, args, kwargs) for one in results]
        known = tuple(part for part in parts if part is not None)
        storages = [storage for one in results if (storage := _storage_of(one)) is not None]
        is_one_each = len(results) == 1 or len(set(storages)) == len(storages)
        changes_layouts = torch.Tag.inplace_view in func.tags
        if len(known) < len(parts) or changes_layouts or not is_one_each:
            return _Notes(None, is_tuple)
        return _Notes(known, is_tuple)

    def _noted_part(self, result: Any, args: Any, kwargs: Any) -> _Result | None:
        if result is None or type(result) is int:
            return _Result(value=result)
        if type(result) is not FakeTensor or result.constant is not None:
            return None
        for index, argument in enumerate(args):
            if argument is result:
                return _Result(index)
        storage = _storage_of(result)
        sources = [index for index, argument in enumerate(args) if _storage_of(argument) == storage]
        sharing = sum(_storage_of(leaf) == storage for leaf in tree_leaves((args, kwargs)))
        if sharing > len(sources) or len(sources) > 1:
            return None  # memory of a tensor in a list, or of an unknown one
        layout = _TensorLayout(result.shape, result.stride(), result.storage_offset(), result.dtype, result.fake_device)
        part = _Result(sources[0] if sources else None, layout)
        return part if _facts(self._made(part, args)) == _facts(result) else None


def _storage_of(value: Any) -> int | None:
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def _facts(tensor: FakeTensor) -> tuple[Any, ...]:
    """Return every property of a tensor without data, except its memory."""
    layout = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.untyped_storage().nbytes())
    kind = (tensor.dtype, tensor.layout, tensor.fake_device, tensor.requires_grad, tensor.is_conj(), tensor.is_neg())
    return (*layout, *kind, torch._C._dispatch_key_set(tensor))
