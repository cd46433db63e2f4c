"""The table that `estimate` prints for people, under the heading ESTIMATE. The only place there that rounds."""

from __future__ import annotations

from collections.abc import Sequence

from ..estimate.types import Estimate, EstimateAt
from ..program import PROGRAM
from ..spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS, RunSpec
from ..units import format_bytes

_HEADINGS = ("card", "memory", "largest", "safe", "at batch", "allocated", "reserved", "device used", "peak in")
_METHODS = {
    "fake_cuda": "real training steps on fake cuda tensors, replayed through a simulated allocator",
    "approximate_fake_cpu": "APPROXIMATE, the CPU's own steps were traced",
    "fake_cpu": "real training steps on fake cpu tensors",
}


def table(estimates: Sequence[Estimate], batch_size: int | None = None) -> str:
    """One row a card; memory at `batch_size`, or at the size trained with today."""
    first = estimates[0]
    shown = batch_size or first.spec.current_batch_size
    rows = [_HEADINGS, *(_row(made, shown) for made in estimates)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(["", _title(first), "", *lines, "", *_notes(estimates), ""])


def _title(made: Estimate) -> str:
    spec = made.spec
    unit = "tokens" if spec.workload.is_text else "pixels a side"
    how = [spec.precision, f"optimizer {spec.optimizer}", f"{spec.mode} mode", *_rarer_settings(spec)]
    return f"ESTIMATE, nothing was measured: {spec.workload.name}, {spec.input_size} {unit}, {', '.join(how)}"


def _rarer_settings(spec: RunSpec) -> list[str]:
    """Name the other settings of the training that are not their default."""
    values = {name: getattr(spec, name) for name in TRAINING_SETTINGS if name not in ("precision", "optimizer", "mode")}
    return [SETTINGS[name].describe(value) for name, value in values.items() if value != DEFAULTS[name]]


def _row(made: Estimate, batch_size: int) -> tuple[str, ...]:
    at = made.at_batch_size(batch_size)
    assert at is not None
    return (
        made.gpu.name,
        format_bytes(made.gpu.total_bytes),
        str(made.largest_batch_size or "none"),
        str(made.safe_batch_size or "none"),
        f"{batch_size}{'' if at.fits else ' (does not fit)'}",
        format_bytes(at.peak_allocated_bytes),
        "-" if at.peak_reserved_bytes is None else format_bytes(at.peak_reserved_bytes),
        "-" if at.device_used_bytes is None else format_bytes(at.device_used_bytes),
        _where(at),
    )


def _where(at: EstimateAt) -> str:
    return f"{(at.phase or 'the batch').replace('_', ' ')}, {at.operator or '-'}"


def _notes(estimates: Sequence[Estimate]) -> list[str]:
    first, known = estimates[0], estimates[0].known_error
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items() if version)
    error = "Known error: never compared with a measurement for such a training on this kind of device."
    if known is not None:
        text = f"median {known.typical_fraction:.1%}, worst {known.worst_fraction:.1%} in {known.runs} comparisons"
        error = f"Known error of this family: {text} ({known.source})."
    calibrated = "calibrated" if all(made.gpu.calibrated for made in estimates) else "not calibrated: context nominal"
    return [
        f"Safe: would still fit with {first.margin_fraction:.1%} more memory than predicted.",
        error,
        f"Method: {_METHODS[first.method]}{_because(first)}; {calibrated}; {versions}.",
        f"Took {max(e.seconds for e in estimates):.1f} s. Measure it on the card: {PROGRAM} {_given(first.spec)}",
    ]


def _because(made: Estimate) -> str:
    return f", because {made.approximate_because}" if made.approximate_because else ""


def _given(spec: RunSpec) -> str:
    """Return how a command line names what is trained."""
    return spec.model if spec.config is None else f"--config FILE --task {spec.task}"
