"""Fake tensors like torch's, but faster: caches what an operator returns for tensors of a layout. Needs torch.

The trace of a large model is a hundred thousand operators on a few hundred layouts. Torch's own cache has keys of all
that a compiler needs, which took most of a trace's time, and no results of other libraries' operators. A result is
cached here only if one made from the cache equals it in every property of a tensor without data. Traces share these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves

_PLAIN = frozenset({bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})
"""Types of arguments that go into the key unchanged."""
_CONSTANT = torch.ops.aten.lift_fresh.default
"""Takes a new tensor with data into the mode, such as the result of `torch.tensor([])`."""


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
    """What an operator returned, in a tuple, a list or alone. `parts` None: it runs each time."""

    parts: tuple[_Result, ...] | None
    container: type[tuple[Any, ...]] | type[list[Any]] | None


_SHARED_NOTES: dict[tuple[Any, ...], _Notes] = {}
_MOST_NOTES = 20_000
"""From so many on they are forgotten before the next trace: a grid of settings makes hundreds of traces."""


class FakeTensors(FakeTensorMode):
    """The mode in which tensors have no data. Enter it around all code that creates and uses them."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        if len(_SHARED_NOTES) > _MOST_NOTES:
            _SHARED_NOTES.clear()
        self._notes = _SHARED_NOTES
        self._attributes: dict[torch.device, dict[str, Any]] = {}
        warns = self._allow_unsafe_data_ptr_access
        guards = (torch._C._set_throw_on_mutable_data_ptr, torch._C._set_warn_deprecated_on_mutable_data_ptr)
        self._guard_data = guards[warns]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # there is nothing to compile, and the wrapper that would prevent it takes as long as a look-up

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        key = self._key(func, args, kwargs)
        notes = None if key is None else self._notes.get(key)
        if notes is not None and notes.parts is not None:
            if notes.container is None:
                return self._made(notes.parts[0], args)
            return notes.container([self._made(part, args) for part in notes.parts])
        if func is _CONSTANT and type(args[0]) is Tensor and args[0].numel() == 0:
            return self._fake(torch.empty_like(args[0], device="meta"), args[0].device)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if key is not None and notes is None:
            self._notes[key] = self._noted(func, args, kwargs, result)
        return result

    def _key(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
        """Return the key of a call; None where the result may depend on more than layouts and plain values."""
        key = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        if _updates_lists(func):  # of which the scalars, such as a step's bias correction, change values alone
            args = [value for value in args if type(value) is not float and not _are_floats(value)]
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
        source: Any = part.value if part.argument is None else args[part.argument]
        layout = part.layout
        if layout is None:
            return source
        made = torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype, device="meta")
        if source is not None:
            made.set_(source.untyped_storage(), layout.offset, layout.shape, layout.stride)
        return self._fake(made, layout.device)

    def _fake(self, made: Tensor, device: torch.device) -> Any:
        """Do the same as `FakeTensor(self, made, device)`, faster: with attributes copied from one that it made."""
        attributes = self._attributes.get(device)
        if attributes is None:
            one = FakeTensor(self, made, device)
            self._attributes[device] = dict(one.__dict__)
            return one
        fake: Any = Tensor._make_subclass(
            FakeTensor, made, False, dispatch_device=True, device_for_backend_keys=attributes["_fake_device"]
        )
        self._guard_data(fake)
        fake.__dict__.update(attributes)
        return fake

    def _noted(self, func: Any, args: Any, kwargs: Any, result: Any) -> _Notes:
        container = type(result) if type(result) in (tuple, list) else None
        results = result if container else (result,)
        shared = Counter(_storage_of(leaf) for leaf in tree_leaves((args, kwargs)))
        parts = [self._noted_part(one, args, shared) for one in results]
        known = tuple(part for part in parts if part is not None)
        storages = [storage for one in results if (storage := _storage_of(one)) is not None]
        is_one_each = len(results) == 1 or len(set(storages)) == len(storages)
        changes_layouts = torch.Tag.inplace_view in func.tags
        if len(known) < len(parts) or changes_layouts or not is_one_each:
            return _Notes(None, container)
        return _Notes(known, container)

    def _noted_part(self, result: Any, args: Any, shared: Counter[int | None]) -> _Result | None:
        if result is None or type(result) is int:
            return _Result(value=result)
        if type(result) is not FakeTensor or result.constant is not None:
            return None
        for index, argument in enumerate(args):
            if argument is result:
                return _Result(index)
        storage = _storage_of(result)
        sources = [index for index, argument in enumerate(args) if _storage_of(argument) == storage]
        if shared[storage] > len(sources) or len(sources) > 1:
            return None  # memory of a tensor in a list, or of an unknown one
        layout = _TensorLayout(result.shape, result.stride(), result.storage_offset(), result.dtype, result.fake_device)
        part = _Result(sources[0] if sources else None, layout)
        return part if _facts(self._made(part, args)) == _facts(result) else None


@cache
def _updates_lists(func: Any) -> bool:
    """Whether an operator changes lists of tensors in place, as optimizers do, and returns nothing new."""
    name: str = func._schema.name
    return name.startswith("aten::_foreach_") and name.endswith("_")


def _are_floats(value: Any) -> bool:
    return type(value) in (tuple, list) and all(type(one) is float for one in value)


def _storage_of(value: Any) -> int | None:
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def _facts(tensor: FakeTensor) -> tuple[Any, ...]:
    layout = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.untyped_storage().nbytes())
    kind = (tensor.dtype, tensor.layout, tensor.fake_device, tensor.requires_grad, tensor.is_conj(), tensor.is_neg())
    return (*layout, *kind, torch._C._dispatch_key_set(tensor))
