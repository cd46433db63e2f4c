"""PURE: the figures of results that are columns of a run: measured and estimated ones apart, so no list mixes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model

from analysis.models import ALL_GPUS
from analysis.models.text import storable_text
from engine import __version__
from engine.describe.result import answer_of
from engine.estimate.gpus import gpus
from engine.facts.result import DeviceFacts, EstimateError, Probe
from engine.facts.savings import cost_per_million_samples_usd
from engine.facts.speed_rounds import SpeedClaim
from engine.facts.stats import decisive_probes
from engine.questions.documents.estimated import Estimated, EstimatedCard
from engine.questions.documents.measured import Measured
from engine.questions.documents.raced import AnyRace
from engine.questions.documents.validated import Validated
from engine.questions.documents.watched import Watched
from engine.questions.kinds import Document

POINTS_MAX = 12
_TEXT_COLUMNS = ("peak_phase", "error_type", "error_message", "failed_phase")
_LENGTHS = {"peak_phase": 40, "error_type": 200, "error_message": 10_000, "failed_phase": 40}


def printed_columns(found: Document) -> dict[str, Any]:
    """Return the headline that the result's page has today, and the version whose rules decide it.

    It has none where one size was checked, where nothing trained, and where no sizes or changes were compared.
    """
    headline = getattr(found, "headline", "")
    if isinstance(found, Measured) and found.largest is not None and not found.is_check:
        headline = answer_of(found).sentence
    return {"printed_headline": headline, "decided_by": __version__}


def validation_columns(found: Validated) -> dict[str, Any]:
    return {**_device_columns(found.device), "verdict": found.verdict.value}


def race_columns(found: AnyRace) -> dict[str, Any]:
    """Return the columns of a race, without figures of a measurement: its speed-up compares settings, not sizes."""
    return {**_device_columns(found.device), "current_batch_size": found.stated_batch_size}


def watch_columns(found: Watched) -> dict[str, Any]:
    """Return the columns of a watched training: what its batch size leaves unused, where a card's memory is known."""
    report = found.report
    return {
        **_device_columns(found.device),
        "current_batch_size": report.process.batch_size,
        "current_waste_bytes": report.unused_bytes,
        "limit_bytes": report.total_bytes,
    }


def _device_columns(device: DeviceFacts) -> dict[str, Any]:
    return {
        "device_name": storable_text(device.name, 200),
        "capacity_bytes": device.capacity_bytes,
        "is_shared": device.is_shared,
    }


def measured_columns(result: Measured) -> dict[str, Any]:
    boundary, savings, recommended, speed = result.boundary, result.savings, result.recommended, result.speed
    samples_per_second = recommended.samples_per_second if recommended else None
    is_bound = speed is not None and speed.claim is SpeedClaim.AT_LEAST  # then the lower end alone is claimed
    return {
        **_device_columns(result.device),
        "largest_batch_size": boundary.largest_batch_size,
        "certified": boundary.certified,
        "boundary_reason": boundary.reason.value,
        "recommended_batch_size": recommended.batch_size if recommended else None,
        "recommended_samples_per_second": samples_per_second,
        "recommended_memory_bytes": recommended.memory_bytes if recommended else None,
        "current_waste_bytes": result.waste.at_current_bytes,
        "speedup": result.speedup,
        "speedup_low": result.speedup_low,
        "speedup_high": result.speedup_high,
        "claimed_speedup": result.speedup_low if is_bound else result.speedup,
        "is_speed_measurable": speed.is_measurable if speed else None,
        "saving_per_run_usd": savings.per_run_usd,
        "saving_per_year_usd": savings.per_year_usd,
        "saving_per_year_usd_low": savings.per_year_usd_low,
        "saving_per_year_usd_high": savings.per_year_usd_high,
        "claimed_saving_per_year_usd": savings.per_year_usd_low if is_bound else savings.per_year_usd,
        "limit_bytes": result.waste.capacity_bytes,
        "memory_curve": memory_points(result.probes),
        "cost_per_million_samples_usd": cost_per_million_samples_usd(savings.price_per_hour_usd, samples_per_second),
        **_graded_estimate_columns(result),
    }


def memory_points(probes: Iterable[Probe]) -> list[list[int]]:
    """Return batch size and bytes of the probes that fitted, reduced to POINTS_MAX with both ends included."""
    fits = [(size, p.memory_bytes) for size, p in decisive_probes(probes).items() if p.fits]
    known = [[size, held] for size, held in fits if held is not None]
    if len(known) <= POINTS_MAX:
        return known
    step = (len(known) - 1) / (POINTS_MAX - 1)
    return [known[round(place * step)] for place in range(POINTS_MAX)]


def estimates_columns(found: Estimated) -> dict[str, Any]:
    """Return the columns of one card; for all cards, how many take today's size, of all that were asked."""
    estimates = found.estimates
    if len(estimates) == 1:
        return _estimate_columns(estimates[0])
    size = estimates[0].spec.get("current_batch_size")
    if size is None:
        return {"gpu": ALL_GPUS}
    return {
        "gpu": ALL_GPUS,
        "estimated_cards": max(len(gpus()), len(estimates)),
        "estimated_cards_that_fit": sum(each.safe_batch_size >= size for each in estimates),
    }


def _estimate_columns(estimate: EstimatedCard) -> dict[str, Any]:
    return {
        "gpu": estimate.gpu.id[:40],
        "device_name": estimate.gpu.name[:200],
        "capacity_bytes": estimate.gpu.total_bytes,
        "estimated_largest_batch_size": estimate.largest_batch_size,
        "estimated_safe_batch_size": estimate.safe_batch_size,
        "estimate_is_calibrated": estimate.gpu.calibrated,
    }


def _graded_estimate_columns(result: Measured) -> dict[str, Any]:
    error = result.estimate_error or EstimateError(None, None)
    columns = _estimate_columns(result.estimate) if result.estimate else {}
    measured = ("device_name", "capacity_bytes")
    return {name: value for name, value in columns.items() if name not in measured} | {
        "estimate_peak_error": _finite(error.peak),
        "estimate_boundary_error": _finite(error.boundary),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def check_columns(model: type[Model], columns: Mapping[str, Any]) -> None:
    """Raise ValueError for a figure that its column cannot hold, such as a negative count of steps."""
    absent = {field.name for field in model._meta.fields if columns.get(field.name) in (None, "", [])}
    try:
        model(**columns).clean_fields(exclude=absent)
    except ValidationError as exc:
        raise ValueError("; ".join(f"{name}: {' '.join(texts)}" for name, texts in exc.message_dict.items())) from exc


def probe_columns(probe: Probe) -> dict[str, Any]:
    """Return the columns of a `Measurement`. Missing text is stored empty."""
    stored = probe.to_dict()
    columns = {field.name: stored[field.name] for field in fields(Probe)}
    columns["timed_step_seconds"] = list(probe.timed_step_seconds)
    for name in _TEXT_COLUMNS:
        columns[name] = storable_text(columns[name] or "", _LENGTHS[name])
    return columns
