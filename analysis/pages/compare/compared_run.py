"""A stored run prepared for comparison: name, settings, environment and result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.models import Run
from analysis.pages.compare.environment import NOT_RECORDED, Facts, environment_facts
from analysis.presentation import labels, run_state
from analysis.presentation.charts.curves import memory_points, speed_points, unsteady_sizes
from analysis.presentation.charts.plots import SeriesStyle
from analysis.presentation.stored_result import StoredResult, read_result
from engine.result import DeviceFacts
from engine.result import Outcome as ProbeOutcome

Curve = dict[int, float]
Range = tuple[float, float]
"""The lower and the upper end of an interval."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run, measured or estimated. None: unknown."""

    largest_batch_size: int | None = None
    is_certified: bool = False
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
    is_estimate: bool = False
    caveat: str = ""
    """Why its figures need care; empty where there is no known reason."""

    @property
    def run_id(self) -> int:
        return int(self.run.pk)

    @property
    def name(self) -> str:
        return f"run {self.run_id}"

    @property
    def look(self) -> SeriesStyle:
        return SeriesStyle.of(self.run_id)

    @property
    def model_name(self) -> str:
        return labels.model_name(self.run.model)

    @property
    def workload(self) -> tuple[str, str]:
        """The model and the shape of its input: a sample of one workload is another amount of work than of another."""
        return self.model_name, labels.describe_input(self.run.spec)

    @property
    def settings(self) -> list[str]:
        return labels.describe_settings(self.run.spec)

    @property
    def place(self) -> str:
        """The card of the result; without a result the run's actual or requested device."""
        name = self.facts.get("GPU", NOT_RECORDED)
        return labels.run_place(self.run) if name == NOT_RECORDED else labels.short_device_name(name)

    @property
    def chip(self) -> run_state.Chip:
        return run_state.chip(self.run)

    @property
    def kind(self) -> str:
        """The kind of its figures; empty where it has none."""
        if self.outcome is None:
            return ""
        return "estimate" if self.is_estimate else "measured"


def compared_run_of(run: Run, carried_probes: int = 0) -> ComparedRun:
    """Read a stored run; `carried_probes` is how many of its probes an earlier attempt measured."""
    if not run.result:
        return ComparedRun(run, {}, None, run.is_estimate)
    if run.is_estimate:
        return _estimated(run, run.result["estimates"])
    result = read_result(run.result)
    facts = environment_facts(result.device, result.environment, carried_probes)
    return ComparedRun(run, facts, _measured_outcome(result), caveat=_caveat(result))


def _measured_outcome(result: StoredResult) -> Outcome:
    best, fastest = result.recommended, result.fastest
    return Outcome(
        largest_batch_size=result.boundary.largest_batch_size,
        is_certified=result.boundary.certified,
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
        refused=_refused(result),
    )


def _refused(result: StoredResult) -> tuple[int, ...]:
    refused = {probe.batch_size for probe in result.probes if probe.outcome is ProbeOutcome.OUT_OF_MEMORY}
    return tuple(sorted(refused))


def _caveat(result: StoredResult) -> str:
    if result.speed is not None and not result.is_speed_measurable:
        return result.speed.reason or "its speeds were not compared"
    unsteady = ", ".join(f"batch {size:,}" for size in result.unsteady_batch_sizes)
    return f"the step times of {unsteady} were not steady" if unsteady else ""


def _estimated(run: Run, estimates: list[dict[str, Any]]) -> ComparedRun:
    """Read an estimate for one card. One for many cards has no single figure, only a caveat."""
    if len(estimates) != 1:
        return ComparedRun(
            run, {}, None, True, f"it estimates {len(estimates)} cards at once; compare one for a single card"
        )
    estimate = estimates[0]
    gpu, versions = estimate["gpu"], estimate.get("versions") or {}
    device = DeviceFacts("cuda", "cuda", gpu["name"], gpu["total_bytes"])
    facts = environment_facts(device, versions) | {"Shared device": NOT_RECORDED, "Carried-over probes": NOT_RECORDED}
    return ComparedRun(run, facts, _estimated_outcome(run, estimate), is_estimate=True)


def _estimated_outcome(run: Run, estimate: Mapping[str, Any]) -> Outcome:
    curve = {at["batch_size"]: _memory_of(at) for at in estimate["at"] if at["fits"]}
    return Outcome(
        largest_batch_size=estimate["largest_batch_size"],
        limit_bytes=estimate["limit_bytes"],
        price_per_hour_usd=run.spec.get("price_per_hour_usd"),
        memory={size: value for size, value in sorted(curve.items()) if value is not None},
        refused=tuple(sorted(at["batch_size"] for at in estimate["at"] if not at["fits"])),
    )


def _memory_of(at: Mapping[str, Any]) -> float | None:
    reserved: float | None = at.get("peak_reserved_bytes")
    return at.get("peak_allocated_bytes") if reserved is None else reserved
