"""PURE: the whole advice as data: the pairs of a global batch, the learning rate, the evidence, and the code.

Command line, pages and API show the same document. Nothing in it changes a setting silently: what the reader has to
decide is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..catalog.stored_workload import stored_workload
from ..kinds import ESTIMATED, MEASURED
from ..result import DeviceFacts, Point, Probe
from ..stats import decisive_probes
from ..training_spec import PURE_BF16, is_own_training
from . import configurations, snippets
from .global_batch import GlobalBatch, MeasuredMemory, Pair, plan_global_batch
from .recipe import not_written, recipe_of
from .snippets import LeftOut, Snippet


@dataclass(frozen=True, slots=True)
class Paper:
    """One published paper, with what it shows."""

    citation: str
    url: str


PAPERS = (
    Paper(
        "McCandlish et al. 2018, An Empirical Model of Large-Batch Training: up to a critical batch size, which "
        "differs by task and grows during training, a larger batch saves steps; beyond it, it needs more samples",
        "https://arxiv.org/abs/1812.06162",
    ),
    Paper(
        "Shallue et al. 2018, Measuring the Effects of Data Parallelism on Neural Network Training: where a larger "
        "batch stops saving steps differs by model, optimizer and data; the learning rate must be tuned for each",
        "https://arxiv.org/abs/1811.03600",
    ),
)
SAMPLES_NEEDED = "A larger batch is faster per sample. It does not mean that the training needs fewer samples."


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """A rule in use for the learning rate of another global batch: multiply it by `factor`. Named, never applied."""

    name: str
    factor: float
    usual_with: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a result (`kind` measured) or an estimate (estimated).

    `is_wanted` says whether the global batch was requested; otherwise it is the larger one of today's and the
    recommended size on all devices. `learning_rate_rules` are empty where the global batch is today's. `not_in_code`
    names settings of the training that the snippets leave to the reader.
    """

    kind: str
    recommended_batch_size: int
    today_global_batch_size: int
    is_wanted: bool
    global_batch: GlobalBatch
    chosen: Pair | None
    learning_rate_rules: tuple[ScalingRule, ...]
    samples_needed: str
    papers: tuple[Paper, ...]
    snippets: tuple[Snippet, ...]
    left_out: tuple[LeftOut, ...]
    not_in_code: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it for a document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Basis:
    """What the advice rests on: a spec, the size that is recommended for it, and what was measured of the sizes.

    `micro_batches` and `ranks` are those of a measured optimizer step.
    """

    kind: str
    spec: Mapping[str, Any]
    device_kind: str
    recommended: int
    points: Mapping[int, Point]
    limit_bytes: int
    capacity_bytes: int | None
    micro_batches: int = 1
    ranks: int = 1

    @property
    def gradients_bytes(self) -> int | None:
        """Return what all gradients add to the measured memory under accumulation; None where it is not known.

        Nothing where the measured training accumulated itself. Not known of a command, of adapters, and of a model that
        is unknown or was not counted.
        """
        if self.micro_batches > 1:
            return 0
        workload = stored_workload(self.spec)
        if workload is None or is_own_training(self.spec) or self.spec.get("lora_rank") is not None:
            return None
        if not workload.parameter_count:  # of a config whose parameters were not counted
            return None
        return workload.parameter_count * (2 if self.spec.get("precision") == PURE_BF16 else 4)


def basis_of_result(
    spec: Mapping[str, Any],
    device: DeviceFacts,
    recommended: Point | None,
    probes: Iterable[Probe],
    others: Iterable[Point | None],
    *,
    is_speed_measurable: bool,
    micro_batches: int | None = None,
    ranks: int = 1,
) -> Basis | None:
    """Return the basis of a measured result; None where no size is recommended.

    `micro_batches` None: as many as the spec accumulates.
    """
    if recommended is None:
        return None
    points = {size: Point.of(probe, device) for size, probe in decisive_probes(probes).items() if probe.fits}
    points |= {point.batch_size: point for point in others if point is not None}
    if not is_speed_measurable:
        points = {size: _without_speed(point) for size, point in points.items()}
    limit_bytes = device.limit_bytes or device.capacity_bytes
    size, capacity_bytes = recommended.batch_size, device.capacity_bytes
    steps = micro_batches or _micro_batches_of(spec)
    return Basis(MEASURED, spec, device.kind, size, points, limit_bytes, capacity_bytes, steps, ranks)


def basis_of_estimate(
    spec: Mapping[str, Any],
    *,
    is_cpu: bool,
    safe: int | None,
    memory: Mapping[int, int],
    limit_bytes: int,
    total_bytes: int,
) -> Basis | None:
    """Return the basis of an estimate, whose safe size takes the place of the recommended one; None without one.

    `memory` is the predicted one by batch size, to be compared with `limit_bytes`.
    """
    if not safe:
        return None
    points = {size: Point(size, None, None, None, None, taken) for size, taken in memory.items()}
    device_kind, steps = "cpu" if is_cpu else "cuda", _micro_batches_of(spec)
    return Basis(ESTIMATED, spec, device_kind, safe, points, limit_bytes, total_bytes, steps)


def _micro_batches_of(spec: Mapping[str, Any]) -> int:
    return int(spec.get("accumulation_steps") or 1)


def advise(basis: Basis, *, global_batch_size: int | None = None, devices: int | None = None) -> Advice:
    """Return the advice for a wanted global batch. Raises SpecError, naming the field, for a number out of range."""
    devices = basis.ranks if devices is None else devices
    today = int(basis.spec["current_batch_size"]) * basis.micro_batches * basis.ranks
    usual = max(today, basis.recommended * basis.micro_batches * devices)
    wanted = usual if global_batch_size is None else global_batch_size
    memory = MeasuredMemory(basis.points, basis.limit_bytes, basis.gradients_bytes)
    plan = plan_global_batch(wanted, devices, basis.recommended, memory)
    made = _snippets(basis, plan.chosen, devices) if plan.chosen else []
    return Advice(
        kind=basis.kind,
        recommended_batch_size=basis.recommended,
        today_global_batch_size=today,
        is_wanted=global_batch_size is not None,
        global_batch=plan,
        chosen=plan.chosen,
        learning_rate_rules=_rules(today, wanted),
        samples_needed=SAMPLES_NEEDED,
        papers=PAPERS,
        snippets=tuple(each for each in made if isinstance(each, Snippet)),
        left_out=tuple(each for each in made if isinstance(each, LeftOut)),
        not_in_code=not_written(basis.spec) if made else (),
    )


def _rules(today: int, wanted: int) -> tuple[ScalingRule, ...]:
    if today == wanted:
        return ()
    ratio = wanted / today
    return (
        ScalingRule("linear", ratio, "SGD"),
        ScalingRule("square root", math.sqrt(ratio), "Adam and its relatives"),
    )


def _snippets(basis: Basis, chosen: Pair, devices: int) -> list[Snippet | LeftOut]:
    recipe = recipe_of(
        basis.spec,
        micro_batch_size=chosen.micro_batch_size,
        accumulation_steps=chosen.accumulation_steps,
        devices=devices,
        device_kind=basis.device_kind,
        limit_bytes=basis.spec.get("memory_limit_bytes"),
        capacity_bytes=basis.capacity_bytes,
    )
    if recipe is None:
        return []
    return [write(recipe) for write in (*snippets.WRITERS, *configurations.WRITERS)]


def _without_speed(point: Point) -> Point:
    memory = (point.peak_allocated_bytes, point.peak_reserved_bytes, point.memory_bytes)
    return Point(point.batch_size, None, None, *memory)
