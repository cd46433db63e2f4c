"""Follows what models gave and is held after the backward pass, for `tune --faster`; not what a model itself keeps."""

from __future__ import annotations

import weakref
from typing import Any

import memorymark_read as read


class Outputs:
    """The outputs of a training. `kept_bytes` is the most that was held of those whose backward pass was over."""

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
