"""PURE: what a start showed of a training that could be set otherwise, as `hook/memorymark_faster.py` noted it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...settings.step_settings import AMPERE
from ..reading import Reading

QUEUE = 2  # batches that a worker of a DataLoader makes ahead, by default


@dataclass(frozen=True, slots=True)
class Facts:
    """One start of today's training, rank 0, on a machine with `cores` for each rank."""

    noted: Mapping[str, Any]
    device_kind: str
    compute_capability: tuple[int, ...] | None
    cores: int
    peak_bytes: int
    waiting_fraction: float | None

    @classmethod
    def of(cls, reading: Reading, *, cores: int, peak_bytes: int, waiting_fraction: float | None) -> Facts:
        """Read them from what the hook noted."""
        capability = reading.card.get("compute_capability")
        kind = str(reading.data["device"] or "cpu").partition(":")[0]
        known = tuple(map(int, str(capability).split("."))) if capability else None
        return cls(reading.data["faster"], kind, known, cores, peak_bytes, waiting_fraction)

    @property
    def is_gpu(self) -> bool:
        return self.device_kind == "cuda"

    @property
    def is_before_ampere(self) -> bool:
        """Whether the GPU has neither bf16 nor TF32."""
        return self.compute_capability is not None and self.compute_capability < AMPERE

    @property
    def framework(self) -> str:
        return str(self.noted["framework"])

    @property
    def loaders(self) -> Sequence[Sequence[Any]]:
        """Each way of loading that fed the training: workers, pinned, persistent, rows by number, count of batches."""
        loaders: Sequence[Sequence[Any]] = self.noted["loaders"]
        return loaders

    @property
    def workers(self) -> int:
        """The fewest workers that a loader of the training had."""
        return min((int(each[0]) for each in self.loaders), default=0)

    @property
    def workers_to_try(self) -> int:
        """As many as there are cores, at least two and at most eight, or twice today's where those are more."""
        return min(max(2 * self.workers, 2, min(self.cores, 8)), max(self.cores, 2))

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        models: Sequence[Mapping[str, Any]] = self.noted["models"]
        return models

    @property
    def dtypes(self) -> set[str]:
        """The types of the parameters."""
        return {each for model in self.models for each in model["dtypes"]}

    def any_model(self, fact: str) -> bool:
        return any(model[fact] for model in self.models)

    @property
    def optimizers(self) -> Sequence[Mapping[str, Any]]:
        optimizers: Sequence[Mapping[str, Any]] = self.noted["optimizers"]
        return optimizers

    @property
    def optimizer(self) -> str:
        """The class of most optimizers."""
        return Counter(each["name"] for each in self.optimizers).most_common(1)[0][0] if self.optimizers else ""

    @property
    def kept_fraction(self) -> float:
        """The share of the peak that outputs took which had been gone back through, and were still held."""
        return int(self.noted["kept_bytes"]) / self.peak_bytes if self.peak_bytes else 0.0


def own_batch_size(reading: Reading) -> int | None:
    """Return the batch size that the script chose itself: the rows that most batches had; None where none was seen.

    A loader tells it; else it is the first dimension of what the largest outermost module was given.
    """
    steps = reading.steps()
    drawn = Counter(rows for step in steps for rows in step.drawn if rows)
    if drawn:
        return drawn.most_common(1)[0][0]
    largest = max((count for step in steps for count, _, _ in step.forwards), default=0)
    given = Counter(s[0] for step in steps for count, s, _ in step.forwards if s and count == largest)
    return given.most_common(1)[0][0] if given else None
