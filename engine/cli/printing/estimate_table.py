"""The table that `estimate` prints for people, under the heading ESTIMATE: at most 80 columns, a row for each GPU."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...describe.commands import measure_command
from ...describe.estimate import (
    METHODS,
    describe_attention,
    describe_emulation,
    describe_estimate,
    describe_known_error,
    describe_margin,
)
from ...describe.ranks import describe_global, ranks_rows
from ...estimate.smallest_card import that_fit
from ...estimate.types import Estimate, EstimateAt
from ...program import PROGRAM
from ...settings.spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS, RunSpec
from ...text.units import format_bytes
from .terminal import table_lines, wrapped


def table(
    estimates: Sequence[Estimate], seconds: float, batch_size: int | None = None, width: int | None = None
) -> str:
    """Return a row per GPU with the memory at `batch_size`, or at today's size; `seconds` is of all estimates."""
    first = estimates[0]
    shown = batch_size or first.spec.current_batch_size
    headings = ("GPU", "memory", "largest", "with margin", f"batch {shown}")
    in_order = sorted(estimates, key=lambda made: made.gpu.total_bytes)
    rows = table_lines(headings, [_row(made, shown) for made in in_order], width, right=range(1, len(headings)))
    lines = [*_at_batch(estimates, shown), *notes(estimates, seconds)]
    return "\n".join(["", *wrapped([title(first.spec)], width), "", *rows, "", *wrapped(lines, width)])


def title(spec: RunSpec, leave_out: Collection[str] = ()) -> str:
    """Write what is trained and how: "ESTIMATE, nothing was measured: BERT base, 128 tokens, bf16, ..."."""
    unit = "tokens" if spec.workload.is_text else "pixels a side"
    sizes = [] if spec.workload.input_field in leave_out else [f"{spec.input_size} {unit}"]
    how = [*sizes, spec.precision, f"optimizer {spec.optimizer}", f"{spec.mode} mode"]
    rarer = (name for name in TRAINING_SETTINGS if name not in ("precision", "optimizer", "mode", *leave_out))
    how += [SETTINGS[name].describe(getattr(spec, name)) for name in rarer if getattr(spec, name) != DEFAULTS[name]]
    name = [] if "model" in leave_out else [spec.workload.name]
    return f"ESTIMATE, nothing was measured: {', '.join([*name, *how])}"


def answer(estimates: Sequence[Estimate], batch_size: int | None = None) -> str:
    if len(estimates) == 1:
        return f"ESTIMATE for {estimates[0].place}: {describe_estimate(estimates[0])}."
    shown = batch_size or estimates[0].spec.current_batch_size
    fitting = that_fit(estimates, shown)
    if not fitting:
        return f"ESTIMATE: batch {shown:,} fits with the margin on none of {len(estimates)} GPUs."
    of_all = f"{len(fitting)} of {len(estimates)} GPUs"
    smallest = fitting[0].place
    return f"ESTIMATE: batch {shown:,} fits with the margin on {of_all}. The one with the least memory: {smallest}."


def _row(made: Estimate, batch_size: int) -> tuple[str, ...]:
    return (
        made.place,
        format_bytes(made.gpu.total_bytes),
        *map(made.size_text, (made.largest_batch_size, made.safe_batch_size)),
        used_text(memory_at(made, batch_size)),
    )


def used_text(at: EstimateAt) -> str:
    """Write "9.3 GiB", and "9.3 GiB x" for what does not fit."""
    return f"{format_bytes(at.used_bytes)}{'' if at.fits else ' x'}"


def memory_at(made: Estimate, batch_size: int) -> EstimateAt:
    at = made.at_batch_size(batch_size)
    assert at is not None  # it was requested
    return at


def _at_batch(estimates: Sequence[Estimate], batch_size: int) -> list[str]:
    all_at = [memory_at(made, batch_size) for made in estimates]
    crosses = ["x: does not fit."] if any(not at.fits for at in all_at) else []
    if len(all_at) > 1:
        order = "Rows: the least memory first."
        return [order, f"Batch {batch_size}: what the device uses. What is allocated and reserved: --json.", *crosses]
    (at,) = all_at
    parts = (
        (at.peak_allocated_bytes, "allocated"),
        (at.peak_reserved_bytes, "reserved"),
        (at.device_used_bytes, "used"),
    )
    figures = ", ".join(f"{format_bytes(size)} {name}" for size, name in parts if size is not None)
    phase = (at.phase or "the batch").replace("_", " ")
    peak = f"peak in {phase}{f' ({at.operator})' if at.operator else ''}"
    return [f"Batch {batch_size}: {figures}; {peak}.", *crosses]


def notes(estimates: Sequence[Estimate], seconds: float) -> list[str]:
    first = estimates[0]
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items() if version)
    because = first.approximate_because
    method = f"APPROXIMATE, the CPU's own steps were traced, because {because}" if because else METHODS[first.method]
    calibrated = "calibrated" if all(made.gpu.calibrated for made in estimates) else "not calibrated: context nominal"
    measured_by = measure_command(first.spec.to_dict(), PROGRAM)
    of_config = f"{PROGRAM} --config FILE --task {first.spec.task}"
    if first.spec.ranks > 1:
        of_config += f" --ranks {first.spec.ranks} --strategy {first.spec.strategy}"
    is_one_of_several = len(estimates) == 1 and first.spec.ranks > 1
    reach = [describe_global(first, first.safe_batch_size)] if is_one_of_several and first.safe_batch_size else []
    return [
        *stop_note(estimates),
        *(f"Global batch size with the margin: {size}." for size in reach),
        *([f"Attention: {attention}."] if len(estimates) == 1 and (attention := describe_attention(first)) else []),
        *(f"Precision: {emulated}." for made in estimates if (emulated := describe_emulation(made))),
        *(f"{name}: {text}." for name, text in ranks_rows(first)),
        f"Margin: {describe_margin(first.margin_fraction)}.",
        f"Known error: {describe_known_error(first.known_error, first.spec.ranks)}.",
        f"Method: {method}; {calibrated}; {versions}.",
        f"Took {seconds:.1f} s. Measure it there: {measured_by or of_config}",
    ]


def stop_note(estimates: Sequence[Estimate]) -> list[str]:
    """Explain the +, where a search ended at its own maximum."""
    size = next((made.largest_batch_size for made in estimates if made.limits == "max_batch_size"), None)
    return [f"{size}+: {size:,} or more, the largest that was tried (--max)."] if size else []
