"""Converts what a module is given and gives for `tune --faster`, and follows its outputs after the backward pass."""

from __future__ import annotations

import weakref
from typing import Any

import memorymark_read as read


def changed(torch: Any, value: Any, change: Any) -> Any:
    """Return a module's input with each tensor changed; a container stays the same object where nothing in it did."""
    if issubclass(type(value), torch.Tensor):
        return change(torch, value)
    if type(value) not in (dict, list, tuple):
        return value
    old = list(value.values() if type(value) is dict else value)
    new = [changed(torch, each, change) for each in old]
    if all(before is after for before, after in zip(old, new, strict=True)):
        return value
    return dict(zip(value, new, strict=True)) if type(value) is dict else type(value)(new)


def converted(torch: Any, value: Any, given: Any, wanted: Any) -> Any:
    """Return a module's output with tensors of one type cast to another, as `accelerate` casts bf16."""
    if issubclass(type(value), torch.Tensor):
        return value.to(wanted) if value.dtype is given else value
    if isinstance(value, dict):
        for name in list(value):
            value[name] = converted(torch, value[name], given, wanted)
    elif isinstance(value, list):
        value[:] = [converted(torch, each, given, wanted) for each in value]
    elif isinstance(value, tuple):
        parts = [converted(torch, each, given, wanted) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def is_image(tensor: Any) -> bool:
    return bool(tensor.ndim == 4 and tensor.is_floating_point())


def channels_last(torch: Any, tensor: Any) -> Any:
    return tensor.contiguous(memory_format=torch.channels_last) if is_image(tensor) else tensor


def is_channels_last(torch: Any, tensor: Any) -> bool:
    """Whether a tensor lies with the channels last, and not both ways."""
    return tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def single(torch: Any, tensor: Any) -> Any:
    return tensor.float() if tensor.dtype is torch.float64 else tensor


def begins_with_rows(torch: Any, value: Any) -> bool:
    """Whether a module's input surely begins with a batch's rows: a table or images. Tokens may begin with a length."""
    first = next((each for each in read.some_tensors(torch, value) if each.ndim), None)
    return first is None or bool(first.is_floating_point() and first.ndim in (2, 4, 5))


class Outputs:
    """The outputs of a training, without what a model itself keeps.

    `kept_bytes` is the most that was held of those whose backward pass was over.
    """

    def __init__(self, torch: Any) -> None:
        self.torch, self.kept_bytes = torch, 0
        self.given: list[Any] = []
        self.old: list[Any] = []

    def give(self, result: Any) -> None:
        found = read.some_tensors(self.torch, result)
        self.given += [weakref.ref(each) for each in found if each.requires_grad and not _base(each).is_leaf]

    def gone_back(self) -> None:
        self.old += self.given
        self.given = []

    def held(self) -> list[Any]:
        """Return the outputs still alive after their backward pass, and record their bytes."""
        found = [each for reference in self.old if (each := reference()) is not None]
        self.kept_bytes = max(self.kept_bytes, sum(each.numel() * each.element_size() for each in found))
        self.old = [weakref.ref(each) for each in found]
        return found

    def free(self) -> bool:
        """Free outputs with their bases and whole views; a sliced or detached part keeps its memory for later."""
        held, self.old = self.held(), []
        views = [t for t in read.objects_of(self.torch.Tensor) if t._base is not None] if held else []
        for each in held:
            base = _base(each)
            whole = [view for view in views if view._base is base and view.numel() == base.numel()]
            for tensor in (base, each, *whole):
                tensor.data = tensor.data.new_empty(0)
        return bool(held)


def _base(tensor: Any) -> Any:
    return tensor if tensor._base is None else tensor._base
