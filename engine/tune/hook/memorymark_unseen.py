"""Notes what of a training a start that ended after a few steps cannot have met, as far as the script shows it."""

from __future__ import annotations

from typing import Any

import memorymark_read as read
from memorymark_rows import length_of


class Unseen:
    """The loaders that gave a batch, and how many batches a pass of the first training loader has."""

    def __init__(self) -> None:
        self.used: list[int] = []
        self.pass_batches: int | None = None
        self.noted: dict[str, Any] = {}

    def drawn(self, iterator: Any, *, is_training: bool) -> None:
        if id(iterator._dataset) not in self.used:
            self.used.append(id(iterator._dataset))
        if is_training and self.pass_batches is None and iterator._dataset_kind == 0:
            self.pass_batches = length_of(iterator._index_sampler)

    def note(self, torch: Any, trained: Any) -> None:
        loaders = read.objects_of(torch.utils.data.DataLoader)
        weights = {id(each): each for module in trained for each in module.parameters()}
        self.noted = {
            "pass_batches": self.pass_batches,
            "unused_loaders": sum(id(each.dataset) not in self.used for each in loaders),
            "frozen_weights": sum(not each.requires_grad for each in weights.values()),
            "weights": len(weights),
        }
