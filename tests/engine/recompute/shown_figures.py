"""Every field of a result document that is stored, and so may be shown, and why it can be believed.

A new field needs a row here, or a test fails: whoever adds one decides whether it can be recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """Why a field is believed."""

    FACT = auto()
    """It was measured or read there. Nothing else shows it; checked against what no machine can have measured."""
    RECOMPUTED = auto()
    """It follows from facts, is derived again, and must come out as claimed (or claim less)."""
    FIXED = auto()
    """One value is allowed, or one of a few, or a sentence of the engine: another is refused."""
    TEXT = auto()
    """Text of at most 20,000 characters, escaped wherever it is shown. It decides nothing."""
    REQUEST = auto()
    """What was requested; read by the rules of a request."""
    PREDICTED = auto()
    """What the sender's predictor said before the run: shown as an estimate, and read by its types."""
    PART = auto()
    """It has fields of its own, each with a row."""


@dataclass(frozen=True, slots=True)
class Row:
    """`by` is the function that recomputes or bounds the field; empty where its type is all there is."""

    kind: Kind
    by: str = ""


FACT, TEXT, PART, REQUEST, PREDICTED = (
    Row(each) for each in (Kind.FACT, Kind.TEXT, Kind.PART, Kind.REQUEST, Kind.PREDICTED)
)
ANSWER = Row(Kind.RECOMPUTED, "engine.build_result.answer")
BOUNDARY = Row(Kind.RECOMPUTED, "engine.recompute.boundary.possible_boundaries")
MEMORY = Row(Kind.FACT, "engine.recompute.physics._memory")
TIMES = Row(Kind.FACT, "engine.recompute.physics._times")
ROUNDS = Row(Kind.RECOMPUTED, "engine.speed.selection.replay")
BLOCKS = Row(Kind.RECOMPUTED, "engine.recompute.speed._untrue_blocks")
CHECK = Row(Kind.RECOMPUTED, "engine.recompute.validation._again")
OTHER_WORK = Row(Kind.FACT, "engine.recompute.physics._other_work")
DEVICE = Row(Kind.FACT, "engine.recompute.physics.impossible_facts")
FILLED = Row(Kind.FACT, "engine.recompute.parts.impossible_breakdown")
DURATION = Row(Kind.FACT, "engine.recompute.physics._longer_than_the_run")
OF_TRAINING = Row(Kind.FACT, "engine.recompute.training.untrue_training")
BREAKDOWN = Row(Kind.FACT, "engine.recompute.parts.impossible_entries")


def _of(kind: str, row: Row, *names: str) -> dict[str, Row]:
    return {f"{kind}.{name}": row for name in names}


TABLE: dict[str, Row] = {
    # what was requested: `spec` is read by the rules of a request, field by field
    **{f"{kind}.*": REQUEST for kind in ("RunSpec", "TuneSpec", "FunctionSpec", "ValidationSpec", "SearchSpec")},
    **_of("RunResult", PART, "spec", "device", "boundary", "largest", "fastest", "recommended", "current", "waste"),
    **_of("RunResult", PART, "largest_with_reserve"),
    **_of("RunResult", PART, "savings", "probes", "timings", "estimate", "estimate_error", "speed", "speed_rounds"),
    **_of("RunResult", PART, "memory_breakdown", "training"),
    **_of("RunResult", ANSWER, "speedup", "speedup_low", "speedup_high", "batch_size_ratio"),
    "RunResult.environment": TEXT,
    "RunResult.fits": Row(Kind.RECOMPUTED, "engine.recompute.document._untrue_members"),
    "RunResult.kinds": Row(Kind.FIXED, "engine.results.figure_kinds.FIGURE_KINDS"),
    "RunResult.schema": Row(Kind.FIXED, "engine.documents.stored.check_schema"),
    **_of("DeviceFacts", DEVICE, "name", "uuid", "driver", "compute_capability", "foreign_used_bytes"),
    **_of("DeviceFacts", DEVICE, "foreign_processes", "beside_bytes"),
    **_of("DeviceFacts", Row(Kind.FACT, "engine.recompute.physics.impossible_device"), "capacity_bytes"),
    **_of("DeviceFacts", Row(Kind.RECOMPUTED, "engine.recompute.physics.impossible_device"), "device", "kind"),
    **_of("DeviceFacts", Row(Kind.RECOMPUTED, "engine.recompute.physics.impossible_device"), "limit_bytes"),
    **_of("Boundary", BOUNDARY, "largest_batch_size", "certified", "refused_batch_size", "reason", "soak_steps"),
    **_of("Boundary", BOUNDARY, "refusal", "allowed_sizes"),
    "Boundary.note": Row(Kind.FIXED, "engine.recompute.boundary.are_possible_notes"),
    **_of("Point", ANSWER, "batch_size", "samples_per_second", "step_seconds", "peak_allocated_bytes"),
    **_of("Point", ANSWER, "peak_reserved_bytes", "memory_bytes", "samples_per_second_low", "samples_per_second_high"),
    **_of("Waste", ANSWER, "capacity_bytes", "at_current_bytes", "at_current_fraction", "at_recommended_bytes"),
    **_of("Waste", ANSWER, "at_recommended_fraction"),
    **_of("Savings", ANSWER, "price_per_hour_usd", "hours_per_run", "runs_per_year", "cost_per_run_usd"),
    **_of("Savings", ANSWER, "per_run_usd", "per_year_usd", "per_run_usd_low", "per_run_usd_high"),
    **_of("Savings", ANSWER, "per_year_usd_low", "per_year_usd_high"),
    **_of("EstimateError", Row(Kind.RECOMPUTED, "engine.estimate.prior.error_of"), "peak", "boundary"),
    **_of("Speed", ANSWER, "is_measurable", "recommended_by", "reserve_fraction", "rounds", "quiet_rounds"),
    **_of("Speed", ANSWER, "confidence", "claim"),
    "Speed.method": Row(Kind.FIXED, "engine.recompute.result._untrue_verdict"),
    "Speed.reason": Row(Kind.FIXED, "engine.recompute.speed._facts"),
    **_of("Speed", OTHER_WORK, "others_cores", "cores"),
    "Speed.seconds": Row(Kind.FACT, "engine.recompute.physics._longer_than_the_run"),
    "Speed.left_out_batch_sizes": ROUNDS,
    **_of("SpeedRound", ROUNDS, "stage", "left_out"),
    "SpeedRound.seconds": Row(Kind.FACT, "engine.recompute.speed._untrue_blocks"),
    "SpeedRound.blocks": PART,
    **_of("SpeedBlock", BLOCKS, "batch_size", "step_seconds", "first_step", "steps", "micro_batches"),
    "SpeedBlock.others_cores": OTHER_WORK,
    **_of("Timings", DURATION, "import_seconds", "model_seconds"),
    **_of("Timings", FACT, "search_seconds", "soak_seconds", "curve_seconds"),
    **_of("Timings", FACT, "carried_seconds", "estimate_seconds", "timing_seconds", "explaining_seconds"),
    "Timings.processes": DURATION,
    "Timings.total_seconds": Row(Kind.FACT, "engine.recompute.physics._longer_than_the_run"),
    **_of("Probe", FACT, "outcome", "purpose", "fresh_process", "steps", "allocator_retries", "timing_is_steady"),
    **_of("Probe", FACT, "timing_conditions"),
    "Probe.batch_size": Row(Kind.FACT, "engine.recompute.physics._sizes"),
    **_of("Probe", MEMORY, "peak_allocated_bytes", "peak_reserved_bytes", "device_used_bytes", "beside_bytes"),
    "Probe.memory_by_kind": PART,
    **_of("Probe", TIMES, "timed_step_seconds", "wall_seconds"),
    **_of("Probe", Row(Kind.RECOMPUTED, "engine.recompute.physics._times"), "step_seconds", "samples_per_second"),
    **_of("Probe", TEXT, "peak_phase", "error_type", "error_message", "failed_phase"),
    **_of("MemoryByKind", MEMORY, "parameters_bytes", "gradients_bytes", "optimizer_state_bytes"),
    **_of("MemoryByKind", MEMORY, "activations_bytes", "other_bytes"),
    "MemoryBreakdown.batch_size": Row(Kind.RECOMPUTED, "engine.breakdown_run.size_to_explain"),
    "MemoryBreakdown.moment": FACT,
    "MemoryBreakdown.method": Row(Kind.FIXED, "engine.recompute.parts.impossible_breakdown"),
    "MemoryBreakdown.total_bytes": Row(Kind.RECOMPUTED, "engine.recompute.parts.impossible_entries"),
    **_of("MemoryBreakdown", FILLED, "limit_bytes", "cached_bytes", "step", "seconds"),
    **_of("MemoryBreakdown", PART, "request", "entries"),
    **_of("Request", FILLED, "size_bytes"),
    **_of("Request", BREAKDOWN, "module", "phase", "operator"),
    "Request.kind": Row(Kind.FIXED, "engine.results.memory_breakdown.CONTENT_LABELS"),
    "Entry.kind": Row(Kind.FIXED, "engine.results.memory_breakdown.CONTENT_LABELS"),
    **_of("Entry", BREAKDOWN, "module", "phase", "operator", "size_bytes", "blocks", "modules"),
    **_of("Training", PART, "throughputs"),
    **_of("Training", OF_TRAINING, "micro_batches", "tokens_per_step", "waiting_for_data_fraction"),
    "Training.whole_run": FACT,
    **_of("Training", Row(Kind.RECOMPUTED, "engine.recompute.training.untrue_training"), "starts", "ranks"),
    **_of("Training", Row(Kind.RECOMPUTED, "engine.recompute.training.untrue_training"), "rank_peaks_bytes"),
    "Training.protection": FACT,
    "Training.unseen": PART,
    **_of("Unseen", FACT, "pass_batches", "unused_loaders", "frozen_weights", "weights"),
    "Training.changed_files": Row(Kind.TEXT, "engine.recompute.training._unlikely_files"),
    "Training.peak": Row(Kind.FIXED, "engine.recompute.training._untrue_peak"),
    **_of("Throughput", OF_TRAINING, "tokens_per_second", "is_steady"),
    "Throughput.batch_size": Row(Kind.FIXED, "engine.recompute.training.untrue_training"),
    "Throughput.waiting_fraction": Row(Kind.FACT, "engine.recompute.training.untrue_training"),
    "Throughput.samples_per_second": Row(Kind.RECOMPUTED, "engine.recompute.training.untrue_training"),
    # a prediction: what it says of itself is compared with the measurement, on the page and as its error
    **_of("Estimate", PART, "spec", "gpu", "at", "known_error", "breakdown"),
    **_of("Estimate", PREDICTED, "limit_bytes", "largest_batch_size", "safe_batch_size", "margin_fraction", "limits"),
    **_of("Estimate", PREDICTED, "method", "seconds", "versions", "expandable_segments", "approximate_because"),
    **_of("Estimate", PREDICTED, "attention_kernels", "window_tokens", "communication_bytes", "schema"),
    **_of("EstimatedGpu", PREDICTED, "id", "name", "total_bytes", "context_bytes", "calibrated"),
    **_of("EstimateAt", PREDICTED, "batch_size", "fits", "peak_allocated_bytes", "peak_reserved_bytes"),
    **_of("EstimateAt", PREDICTED, "device_used_bytes", "phase", "operator"),
    "EstimateAt.by_kind": PART,
    **_of("KindBytes", PREDICTED, "parameters_bytes", "buffers_bytes", "gradients_bytes", "optimizer_state_bytes"),
    **_of("KindBytes", PREDICTED, "activations_bytes", "temporaries_bytes", "workspaces_bytes"),
    "KindBytes.communication_bytes": PREDICTED,
    **_of("KnownError", PREDICTED, "typical_fraction", "worst_fraction", "runs", "source"),
    **_of("ValidationResult", PART, "spec", "device", "checks", "steps"),
    "ValidationResult.environment": TEXT,
    "ValidationResult.total_seconds": Row(Kind.FACT, "engine.recompute.validation._impossible"),
    "ValidationResult.schema": Row(Kind.FIXED, "engine.documents.stored.check_schema"),
    **_of("ValidationResult", CHECK, "verdict", "verdict_text"),
    **_of("Check", CHECK, "name", "claim", "verdict", "finding", "low", "high", "text"),
    "Check.measured": CHECK,
    **_of("StepFigures", FACT, "peak_bytes", "step_seconds", "compile_seconds"),
}
"""By class and field. Of `RunResult` also what its `to_dict` adds, and `training` of a command or function."""
