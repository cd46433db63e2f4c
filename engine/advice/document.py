"""PURE: the whole advice as data, which command line, pages and API show. What the reader has to decide is named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import SpecError
from ..estimate.types import Estimate, safe_bytes
from ..facts.figure_kinds import ESTIMATED, MEASURED
from ..facts.result import Point, RunResult
from ..facts.stats import decisive_probes
from ..settings.catalog.stored_workload import stored_workload
from ..settings.step_settings import PURE_BF16
from ..trainings.script.result import Training
from . import snippets
from .global_batch import BatchPair, GlobalBatch, MeasuredMemory, plan_global_batch
from .recipe import not_written, recipe_of
from .snippets import NoSnippet, Snippet


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
SAMPLES_NEEDED = (
    "A larger batch may need more samples to reach the same loss: compare the time to a loss, not to a step."
)


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """A rule in use for the learning rate of another global batch: multiply it by `factor`. Named, never applied."""

    name: str
    factor: float
    usual_with: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a result (`kind` measured) or an estimate (estimated).

    Compared speeds recommend a size; in place of it stands the largest that keeps an estimate's margin, or of a
    measurement the reserve.
    `is_wanted` says whether the global batch was requested; otherwise it is the larger one of today's and the
    recommended size on all devices. `learning_rate_rules` are empty where the global batch is today's. `not_in_code`
    names settings of the training that the snippets leave to the reader.
    """

    kind: str
    recommended_batch_size: int | None
    with_margin_batch_size: int | None
    today_global_batch_size: int
    is_wanted: bool
    global_batch: GlobalBatch
    chosen: BatchPair | None
    learning_rate_rules: tuple[ScalingRule, ...]
    samples_needed: str
    papers: tuple[Paper, ...]
    snippets: tuple[Snippet, ...]
    left_out: tuple[NoSnippet, ...]
    not_in_code: tuple[str, ...] = ()

    @property
    def most_batch_size(self) -> int:
        """The size that no pair exceeds: the recommended one, else the largest with its margin or reserve."""
        return self.recommended_batch_size or self.with_margin_batch_size or 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Basis:
    """What the advice rests on. `most` is the size that no micro-batch exceeds; `micro_batches` those of the step."""

    kind: str
    spec: Mapping[str, Any]
    device_kind: str
    most: int
    points: Mapping[int, Point]
    limit_bytes: int
    capacity_bytes: int | None
    micro_batches: int = 1
    ranks: int = 1
    is_recommended: bool = False

    @property
    def gradients_bytes(self) -> int | None:
        """Return what accumulation adds to the measured memory; None for a command, adapters, an unknown model."""
        if self.micro_batches > 1:
            return 0
        workload = stored_workload(self.spec)
        # of a config, parameters may not be counted
        if workload is None or not workload.parameter_count or self.spec.get("lora_rank") is not None:
            return None
        return workload.parameter_count * (2 if self.spec.get("precision") == PURE_BF16 else 4)


def basis_of_result(result: RunResult, training: Training | None = None) -> Basis | None:
    """Return a result's basis: its recommended size, else the largest that keeps the reserve; None without either."""
    chosen = result.recommended or result.largest_with_reserve
    if chosen is None:
        return None
    device, spec = result.device, result.spec.to_dict()
    points = {size: Point.of(p, device) for size, p in decisive_probes(result.probes).items() if p.fits}
    named = (result.largest, result.fastest, chosen, result.current)
    points |= {point.batch_size: point for point in named if point is not None}
    if result.speed is not None and not result.speed.is_measurable:
        points = {
            size: Point(size, None, None, each.peak_allocated_bytes, each.peak_reserved_bytes, each.memory_bytes)
            for size, each in points.items()
        }
    return Basis(
        MEASURED,
        spec,
        device.kind,
        most=chosen.batch_size,
        points=points,
        limit_bytes=device.limit_bytes or device.capacity_bytes,
        capacity_bytes=device.capacity_bytes,
        micro_batches=(training.micro_batches if training else 0) or _micro_batches_of(spec),
        ranks=(training.ranks if training else 0) or 1,
        is_recommended=result.recommended is not None,
    )


def basis_of_estimate(made: Estimate) -> Basis | None:
    """Return the basis of an estimate, by its size that keeps the margin; None without one."""
    if not made.safe_batch_size:
        return None
    spec = made.spec.to_dict()
    memory = {at.batch_size: at.peak_reserved_bytes or at.peak_allocated_bytes for at in made.at}
    return Basis(
        ESTIMATED,
        spec,
        "cpu" if made.gpu.id == "cpu" else "cuda",
        most=made.safe_batch_size,
        points={size: Point(size, None, None, None, None, taken) for size, taken in memory.items()},
        limit_bytes=safe_bytes(made.limit_bytes, made.margin_fraction),
        capacity_bytes=made.gpu.total_bytes,
        micro_batches=_micro_batches_of(spec),
        ranks=made.spec.ranks,
    )


def _micro_batches_of(spec: Mapping[str, Any]) -> int:
    return int(spec.get("accumulation_steps") or 1)


def advise(basis: Basis, *, global_batch_size: int | None = None, devices: int | None = None) -> Advice:
    """Return the advice for a wanted global batch. Raises SpecError, naming the field, for a number out of range."""
    devices = basis.ranks if devices is None else devices
    if basis.kind == ESTIMATED and basis.ranks not in (1, devices):
        raise SpecError("devices", f"the estimate is of {basis.ranks} GPUs: estimate that number of them")
    today = int(basis.spec["current_batch_size"]) * basis.micro_batches * basis.ranks
    usual = max(today, basis.most * basis.micro_batches * devices)
    wanted = usual if global_batch_size is None else global_batch_size
    memory = MeasuredMemory(basis.points, basis.limit_bytes, basis.gradients_bytes)
    plan = plan_global_batch(wanted, devices, basis.most, memory)
    made = _snippets(basis, plan.chosen, devices) if plan.chosen else []
    return Advice(
        kind=basis.kind,
        recommended_batch_size=basis.most if basis.is_recommended else None,
        with_margin_batch_size=None if basis.is_recommended else basis.most,
        today_global_batch_size=today,
        is_wanted=global_batch_size is not None,
        global_batch=plan,
        chosen=plan.chosen,
        learning_rate_rules=_rules(today, wanted),
        samples_needed=SAMPLES_NEEDED,
        papers=PAPERS,
        snippets=tuple(each for each in made if isinstance(each, Snippet)),
        left_out=tuple(each for each in made if isinstance(each, NoSnippet)),
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


def _snippets(basis: Basis, chosen: BatchPair, devices: int) -> list[Snippet | NoSnippet]:
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
    return [write(recipe) for write in snippets.WRITERS]
