"""A stored run prepared for comparison: name, settings, environment and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.charts.curves import memory_points, speed_points, unsteady_sizes
from analysis.charts.plots import SeriesStyle
from analysis.lists.comparison.query import CompareQuery
from analysis.lists.environment import NOT_RECORDED, Facts, environment_facts, environment_title
from analysis.models import Run
from analysis.presentation import labels, run_state
from analysis.presentation.kinds import presentation_of, run_place
from analysis.presentation.labels import Chip
from analysis.presentation.unreadable import UnreadableError, read_stored
from engine.describe.speed import speed_of
from engine.facts.figure_kinds import grade_of
from engine.facts.result import DeviceFacts
from engine.facts.result import Outcome as ProbeOutcome
from engine.questions.documents.estimated import Estimated, EstimatedCard
from engine.questions.documents.measured import Measured
from engine.settings.spec import trained_settings
from engine.trainings.script.faster.spec import OWN

_OF_THE_COMMAND = frozenset(
    {"model", "command", "batch", "batch_in", "catalogue", "function", "directory", "name", "whole_run", "sizes"}
)
"""What the spec of ranks says of the command that starts them, and no training of one device has."""
Curve = dict[int, float]
Range = tuple[float, float]
"""The lower and the upper end of an interval."""


@dataclass(frozen=True, slots=True)
class Outcome:
    largest_batch_size: int | None = None
    is_lower_bound: bool = False
    """Whether the search ended at the largest size before its limit: larger ones may fit."""
    ranks: int = 1
    """How many train together: the batch size is of each, the speed of all."""
    safe_batch_size: int | None = None
    """The largest size within the margin of error; only estimates have one."""
    recommended_batch_size: int | None = None
    samples_per_second: float | None = None
    fastest_samples_per_second: float | None = None
    step_seconds: float | None = None
    memory_bytes: int | None = None
    limit_bytes: int | None = None
    price_per_hour_usd: float | None = None
    memory: Curve = field(default_factory=dict)
    speed: Curve = field(default_factory=dict)
    speed_intervals: dict[int, Range] = field(default_factory=dict)
    """Intervals by batch size; a size without one was not timed side by side with others."""
    unsteady: frozenset[int] = frozenset()
    """Batch sizes whose timing did not become steady."""
    fastest_batch_size: int | None = None
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison. `outcome` is None for a run without a result: it is listed, and has no figures."""

    run: Run
    facts: Facts
    outcome: Outcome | None
    caveat: str = ""
    """Why its figures need care; empty where there is no known reason."""
    number: int = 0
    """Its place among the compared runs, which gives its lines a colour of their own."""

    @property
    def is_predicted(self) -> bool:
        return presentation_of(self.run).is_predicted

    @property
    def is_of_ranks(self) -> bool:
        return bool(self.run.spec.get("catalogue"))

    @property
    def runs_own_code(self) -> bool:
        return presentation_of(self.run).runs_own_code and not self.is_of_ranks

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return the settings; of ranks what each one trains, of a script with the batch size of its result."""
        stored: dict[str, Any] = self.run.spec
        if not self.is_of_ranks:
            is_own = stored.get("batch") == OWN
            return {**stored, "current_batch_size": self.run.current_batch_size} if is_own else stored
        own = {name: value for name, value in stored.items() if name not in _OF_THE_COMMAND}
        return {**trained_settings(stored), **own}

    @property
    def run_id(self) -> int:
        return int(self.run.pk)

    @property
    def name(self) -> str:
        return f"run {self.run_id}"

    @property
    def look(self) -> SeriesStyle:
        return SeriesStyle.of(self.number)

    @property
    def model_name(self) -> str:
        return labels.model_name(self.spec["model"] if self.is_of_ranks else self.run.model)

    @property
    def workload(self) -> tuple[str, str]:
        """Return the model and its input shape: samples of two workloads are different amounts of work."""
        return self.model_name, labels.describe_input(self.spec)

    @property
    def settings(self) -> list[str]:
        of_ranks = [f"{self.spec['strategy']} on {self.spec['ranks']} ranks"] if self.is_of_ranks else []
        return [*of_ranks, *presentation_of(self.run).settings(self.run.spec)]

    @property
    def place(self) -> str:
        """The card of the result; without a result the run's actual or requested device."""
        name = self.facts.get(environment_title("device_name"), NOT_RECORDED)
        return run_place(self.run) if name == NOT_RECORDED else labels.short_device_name(name)

    @property
    def chip(self) -> Chip:
        return run_state.chip(self.run)

    @property
    def grade(self) -> str:
        return grade_of(self.run.spec)

    @property
    def kind(self) -> str:
        """Return the kind of the run's figures; empty where it has no figures."""
        if self.outcome is None:
            return ""
        return "estimate" if self.is_predicted else self.grade


def compared_run_of(run: Run, carried_probes: int = 0) -> ComparedRun:
    if not run.result:
        return ComparedRun(run, {}, None)
    try:
        if presentation_of(run).is_predicted:
            return _estimated(run, read_stored(Estimated.from_dict, run.result).estimates)
        result = read_stored(Measured.from_dict, run.result)
    except UnreadableError as error:
        return ComparedRun(run, {}, None, caveat=str(error))
    caveat = "" if result.is_speed_measurable else speed_of(result).said
    facts = environment_facts(result.device, result.environment, carried_probes)
    return ComparedRun(run, facts, _measured_outcome(result), caveat)


def _measured_outcome(result: Measured) -> Outcome:
    best, fastest = result.recommended, result.fastest
    refused = {probe.batch_size for probe in result.probes if probe.outcome is ProbeOutcome.OUT_OF_MEMORY}
    return Outcome(
        ranks=max(result.training.ranks, 1) if result.training else 1,
        largest_batch_size=result.boundary.largest_batch_size,
        is_lower_bound=result.largest is not None and not result.boundary.certified,
        recommended_batch_size=best.batch_size if best else None,
        samples_per_second=best.samples_per_second if best else None,
        fastest_samples_per_second=fastest.samples_per_second if fastest else None,
        step_seconds=best.step_seconds if best else None,
        memory_bytes=best.memory_bytes if best else None,
        limit_bytes=result.limit_bytes,
        price_per_hour_usd=result.savings.price_per_hour_usd,
        memory=memory_points(result.probes),
        speed=speed_points(result.probes) if result.is_speed_measurable else {},
        speed_intervals={size: (low, high) for size, low, high in result.speed_intervals},
        unsteady=unsteady_sizes(result.probes),
        fastest_batch_size=fastest.batch_size if fastest else None,
        refused=tuple(sorted(refused)),
    )


def _estimated(run: Run, estimates: Sequence[EstimatedCard]) -> ComparedRun:
    """Read an estimate for one card; an estimate for many cards has no single figure, only a caveat."""
    if len(estimates) != 1:
        return ComparedRun(
            run, {}, None, f"it estimates {len(estimates)} GPUs at once; compare an estimate for one GPU"
        )
    estimate = estimates[0]
    device = DeviceFacts("cuda", "cuda", estimate.gpu.name, estimate.gpu.total_bytes)
    unknown = {environment_title(name): NOT_RECORDED for name in ("is_shared", "carried_probes")}
    outcome = Outcome(
        ranks=run.spec.get("ranks", 1),
        largest_batch_size=estimate.largest_batch_size,
        is_lower_bound=estimate.limits == "max_batch_size",
        safe_batch_size=estimate.safe_batch_size,
        limit_bytes=estimate.limit_bytes,
        price_per_hour_usd=run.spec.get("price_per_hour_usd"),
        memory=dict(sorted((at.batch_size, at.memory_bytes) for at in estimate.at if at.fits)),
        refused=tuple(sorted(at.batch_size for at in estimate.at if not at.fits)),
    )
    return ComparedRun(run, environment_facts(device, estimate.versions) | unknown, outcome)


def baseline_of(subjects: Sequence[ComparedRun], query: CompareQuery) -> ComparedRun | None:
    """Choose the named run, else the first with figures; untrusted reports come last."""
    if query.baseline is not None:
        return next(subject for subject in subjects if subject.run_id == query.baseline)
    ordered = sorted(subjects, key=lambda subject: not subject.run.is_trusted)
    return next((subject for subject in ordered if subject.outcome), None)
