"""PURE: what a start showed of a training that could be set otherwise, as `hook/memorymark_faster.py` noted it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ....race.numbers import UNKNOWN, Numbers, compare_numbers
from ....settings.step_settings import AMPERE, ROUNDING_TOLERANCES
from ....text.from_json import from_json
from ..judge.evidence import Evidence
from ..judge.timed_steps import samples_of_a_step
from ..notes.reading import Reading, Step
from ..result import LOADER_LIMITS_FROM

QUEUE = 2  # batches that a worker of a DataLoader makes ahead, by default


@dataclass(frozen=True, slots=True)
class Loading:
    """One way of loading that fed the training. Rows that do not come by number would come once from each worker."""

    workers: int
    is_pinned: bool
    is_persistent: bool
    is_by_number: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutermostModule:
    """An outermost module: one that the training calls. `held_as` is its attribute's name in another module, if any.

    `convolutions` are those of images, `any_convolutions` all, of rows and volumes too. `takes_images` says that a
    tensor with channels was given to it, and `draws` that a pass drew random numbers on a GPU, as dropout does.
    `cached_by` are the modules within whose configs have a decoder's cache, as "decoder"; "" is the module itself.
    `is_of_torch`: its class has the `forward` of one of torch.nn, as Sequential.
    """

    convolutions: int
    is_channels_last: bool
    uses_cache: bool
    is_compiled: bool
    is_autocast: bool
    dtypes: tuple[str, ...]
    any_convolutions: int = 0
    name: str = ""
    held_as: str = ""
    takes_images: bool = True
    draws: bool = False
    cached_by: tuple[str, ...] = ()
    is_of_torch: bool = False

    @property
    def described(self) -> str:
        """Its name and its class, as in "actor (Sequential)"; what is known of them."""
        return f"{self.held_as} ({self.name})" if self.held_as and self.name else self.held_as or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedOptimizer:
    """An optimizer that made a step, by the name of its class."""

    name: str
    can_be_fused: bool
    can_be_foreach: bool
    is_fused: bool
    is_foreach: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What the hook noted of today's training, as a document keeps it: the lines to paste follow from it."""

    framework: str
    loaders: tuple[Loading, ...]
    models: tuple[OutermostModule, ...]
    optimizers: tuple[UsedOptimizer, ...]
    kept_bytes: int
    matmul_precision: str | None
    cudnn_benchmark: bool
    draws_random: bool
    is_expandable: bool = False

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Noted:
        """Read what the hook wrote, which has more."""
        names = Loading.__dataclass_fields__
        loaders = [dict(zip(names, each, strict=False)) for each in noted["loaders"]]
        return from_json(cls, {**noted, "loaders": loaders})


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Today's training; `loss_noise` is the largest relative difference between the losses of two starts of it.

    `mask_noise` is that to a start in which a GPU drew other numbers for dropout; None: it draws none.
    """

    batch_size: int
    samples_per_step: int
    ranks: int
    memory_bytes: int
    step_seconds: float
    waiting_fraction: float | None
    loss_noise: float | None
    cores: int
    is_batch_size_guessed: bool = False
    mask_noise: float | None = None

    @property
    def stated_batch_size(self) -> int | None:
        return None if self.is_batch_size_guessed else self.batch_size

    @property
    def is_limited_by_loader(self) -> bool:
        return (self.waiting_fraction or 0.0) >= LOADER_LIMITS_FROM


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of today's training, rank 0, and of its device."""

    noted: Noted
    today: Today
    device_kind: str
    compute_capability: str | None

    @property
    def is_gpu(self) -> bool:
        return self.device_kind == "cuda"

    @property
    def is_before_ampere(self) -> bool:
        """Whether the GPU has neither bf16 nor TF32. Raises ValueError where its capability is no version."""
        if not self.compute_capability:
            return False
        return tuple(map(int, self.compute_capability.split("."))) < AMPERE

    @property
    def cores(self) -> int:
        """The cores of the machine for each rank."""
        return max(self.today.cores // max(self.today.ranks, 1), 1)

    @property
    def workers(self) -> int:
        return min((each.workers for each in self.noted.loaders), default=0)

    @property
    def workers_to_try(self) -> int:
        """As many as there are cores, at least two and at most eight, or twice today's where those are more."""
        return min(max(2 * self.workers, 2, min(self.cores, 8)), max(self.cores, 2))

    @property
    def dtypes(self) -> set[str]:
        return {each for model in self.noted.models for each in model.dtypes}

    @property
    def draws_masks(self) -> bool:
        """Whether a pass of a model draws random numbers on a GPU, as dropout does: other ones in another type."""
        return self.is_gpu and self.any_model("draws")

    def any_model(self, fact: str) -> bool:
        return any(getattr(model, fact) for model in self.noted.models)

    @property
    def optimizer(self) -> str:
        return next((name for name, _ in Counter(each.name for each in self.noted.optimizers).most_common(1)), "")

    def names_of_optimizers(self, form: str) -> list[str]:
        return list(dict.fromkeys(each.name for each in self.noted.optimizers if getattr(each, form)))

    @property
    def kept_fraction(self) -> float:
        return self.noted.kept_bytes / self.today.memory_bytes if self.today.memory_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One start of a variant; `warm_up_seconds` go from its first batch or pass to the end of the memory steps."""

    memory_bytes: int
    losses: tuple[float, ...]
    warm_up_seconds: float

    def numbers(self, today: Trial, noise: float | None, rounds_as: str) -> Numbers:
        """Compare the losses with today's, whose starts differ by `noise`; not known where noise is None or large."""
        if noise is None:
            return UNKNOWN
        return compare_numbers(self.losses, today.losses, noise, ROUNDING_TOLERANCES[rounds_as])


def settled_speed(evidence: Evidence, workers: int) -> float:
    """Return the samples a second of the timed steps, without those fed from batches made in advance."""
    steps = evidence.probe.timed_step_seconds
    later = steps if evidence.timing.is_settled else steps[workers * QUEUE :] or steps
    return samples_of_a_step(evidence.probe) / fmean(later)


def own_batch_size(reading: Reading) -> tuple[int | None, bool]:
    """Return the batch size that the script chose itself, None where no batch was seen, and whether it is a guess.

    A loader tells it; else it is the first dimension of what the largest outermost module was given: maybe a length.
    Where sizes vary, none is the one: a graph has as many rows as nodes, an agent acts by one. A loader's batch may be
    trained in parts, and its row may be a batch that was made before.
    """
    steps = reading.steps()
    batches, given = [rows for step in steps for rows in step.drawn], _given(steps)
    drawn = Counter(filter(None, batches))
    if set(drawn) == {1} and max(given, default=1) > 1:  # each row is a batch that was made before
        drawn.clear()
    size = _most_frequent(drawn or given)
    if size is None:
        return None, True
    if drawn:
        part = _most_frequent(given) or 0
        is_whole = any(size in each.shape for step in steps for each in step.forwards)
        is_cut = part > 0 and size % part == 0 and not is_whole
        return size, is_cut or 3 * drawn[size] < 2 * len(batches)
    models = reading.data["faster"]["models"]
    return size, any(batches) or len(given) > 1 or not all(model["begins_with_rows"] for model in models)


def _most_frequent(counts: Counter[int]) -> int | None:
    return counts.most_common(1)[0][0] if counts else None


def _given(steps: Sequence[Step]) -> Counter[int]:
    """Count what the largest module was given by its rows, weighed by them: agents act by few, and train by many."""
    largest = max((each.parameters for step in steps for each in step.forwards), default=0)
    found: Counter[int] = Counter()
    for step in steps[1:] or steps:  # the first may have more
        for each in step.forwards:
            if each.shape and each.parameters == largest:
                found[each.shape[0]] += each.shape[0]
    return found
