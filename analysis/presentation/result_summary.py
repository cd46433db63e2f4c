"""The parts of a result: three figures, the certificate, the setting to paste, the time spent."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.presentation.estimate_error import compare_to_estimate
from analysis.presentation.formatting import (
    NOT_MEASURED,
    bytes_text,
    duration,
    factor,
    factor_range,
    number,
    percent,
    rate,
    round_percent,
    times,
    usd,
    usd_range,
)
from analysis.presentation.headline import is_faster
from analysis.presentation.labels import trains
from analysis.presentation.stored_estimate import StoredEstimate
from analysis.presentation.stored_result import StoredResult
from engine.catalog.stored_workload import stored_workload
from engine.result import CPU_COUNTS_TENSORS, Outcome, Probe, Reason, Savings
from engine.search import does_not_fit
from engine.training_spec import PURE_BF16, is_own_training
from engine.tune.spec import BATCH_SIZE, BATCH_WAYS
from engine.tune.training import describe_loader


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number: its kind (measured, derived, empty where unknown), the text under it, its assumptions.

    `interval` is the 95 % confidence interval; empty where it is unknown.
    """

    title: str
    value: str
    kind: str
    text: str
    assumption: str = ""
    is_gain: bool = False
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of the certificate. `outcome` is fits, refused, open or estimate."""

    outcome: str
    word: str
    text: str


def figures(result: StoredResult, savings: Savings | None = None) -> list[Figure]:
    """Return speed-up, cost per run and saving per year, with the run's own assumptions or the reader's."""
    savings = savings or result.savings
    if not result.is_speed_measurable:
        return [_speedup(result), *map(_unknown_money, ("Cost per run", "Saved per year"))]
    return [_speedup(result), _cost_per_run(savings), _saved_per_year(savings)]


def _unknown_money(title: str) -> Figure:
    return Figure(title, NOT_MEASURED, "", "Not derived, because the speed was not measurable.")


def _speedup(result: StoredResult) -> Figure:
    title = "Speed-up"
    if result.speedup is None or result.current is None or result.recommended is None:
        return Figure(title, factor(None), "", _why_no_speedup(result))
    text = f"{rate(result.current.samples_per_second)} → {rate(result.recommended.samples_per_second)} samples/s."
    ratio = result.batch_size_ratio
    if ratio is not None and ratio > 1:
        text += f" The batch is {times(ratio)} as large."
    interval = factor_range(result.speedup_low, result.speedup_high)
    is_gain = is_faster(result) if interval else result.speedup > 1
    return Figure(title, factor(result.speedup), "measured", text, is_gain=is_gain, interval=interval)


def _why_no_speedup(result: StoredResult) -> str:
    if result.speed is not None and not result.is_speed_measurable:
        return (
            f"{_sentence(result.speed.reason or 'the speeds were not compared')} Speed was not used to choose a size."
        )
    if result.recommended is None:
        return "No size was measured for a comparison."
    if result.current_is_refused:
        return f"Your {result.current_batch_size:,} does not run here, so there is no speed to compare with."
    if result.current is None and result.current_batch_size > result.spec["max_batch_size"]:
        return f"Your {result.current_batch_size:,} is above the maximum of this run, so it was not measured."
    return "The speed of one of the two sizes was not measured."


def _cost_per_run(savings: Savings) -> Figure:
    today = savings.hours_per_run * savings.price_per_hour_usd
    assumption = f"{number(savings.hours_per_run)} h a run today, {usd(savings.price_per_hour_usd)} an hour"
    if savings.per_run_usd is None:
        return Figure(
            "Cost per run", usd(today), "derived", "today; the cost with the recommended size is unknown.", assumption
        )
    interval = ""
    if savings.per_run_usd_low is not None and savings.per_run_usd_high is not None:
        interval = usd_range(today - savings.per_run_usd_high, today - savings.per_run_usd_low)
    cost, text = usd(today - savings.per_run_usd), f"was {usd(today)}."
    return Figure("Cost per run", cost, "derived", text, assumption, interval=interval)


def _saved_per_year(savings: Savings) -> Figure:
    per_year = savings.per_year_usd
    formula = "hours × price × (1 − 1 / speed-up) × runs."
    text = "Unknown without a measured speed-up." if per_year is None else formula
    assumption = f"{savings.runs_per_year:,} runs a year on one device"
    kind = "" if per_year is None else "derived"
    low = per_year if savings.per_year_usd_low is None else savings.per_year_usd_low
    interval = usd_range(savings.per_year_usd_low, savings.per_year_usd_high)
    return Figure("Saved per year", usd(per_year), kind, text, assumption, (low or 0) > 0, interval)


def describe_reserve(result: StoredResult) -> str:
    """Say what the recommended size leaves free, and what was requested; empty where either is unknown."""
    if result.recommended is None or result.free_bytes is None or result.speed is None:
        return ""
    share = percent(result.free_bytes / result.limit_bytes)
    left = f"{result.recommended.batch_size:,} leaves {bytes_text(result.free_bytes)} free, {share}"
    requested = f"requested: at least {round_percent(result.speed.reserve_fraction)}"
    return f"{left}; {requested}{'' if result.keeps_reserve else ', which no measured size leaves'}."


def describe_timing(result: StoredResult) -> str:
    """Say how the speeds were compared, and the load of other work meanwhile; empty where that is unknown."""
    speed = result.speed
    if speed is None or not speed.seconds:
        return ""
    text = f"Compared side by side for {duration(speed.seconds)}"
    if speed.rounds:
        text += f" in {speed.rounds} {'rounds' if result.training is None else 'pairs of starts'}"
        # of starts it is not known
        text += f", {speed.quiet_rounds} of them without other work" if result.training is None else ""
        text += f"; the intervals have a confidence of {round_percent(speed.confidence)}"
    if speed.others_cores is not None and speed.cores:
        text += f". Meanwhile other work used {speed.others_cores:.1f} of {speed.cores} cores"
    if speed.left_out_batch_sizes:
        sizes = ", ".join(f"{size:,}" for size in speed.left_out_batch_sizes)
        text += f". Not timed, because they did not fit together with the others: {sizes}"
    return f"{text}."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def certificate(result: StoredResult) -> list[Evidence]:
    """Return the evidence: what fits, what was refused, and what is unknown."""
    boundary, lines = result.boundary, []
    if boundary.largest_batch_size:
        lines.append(Evidence("fits", "fits", _describe_fit(result)))
    if boundary.refused_batch_size:
        lines.append(Evidence("refused", "refused", _describe_refusal(result)))
    if not boundary.certified and not boundary.refused_batch_size:
        lines.append(Evidence("open", "open", "No larger size is known to run out of memory."))
    if boundary.note:
        lines.append(Evidence("open", "note", boundary.note))
    if result.device.kind == "cpu":
        lines.append(Evidence("open", "note", CPU_COUNTS_TENSORS))
    return lines


def _describe_fit(result: StoredResult) -> str:
    boundary = result.boundary
    if boundary.soak_steps:
        steps = f"{boundary.soak_steps} {'step' if boundary.soak_steps == 1 else 'steps'} in a fresh process"
        return f"Batch {boundary.largest_batch_size:,} {_did(result)} {steps}."
    return f"Batch {boundary.largest_batch_size:,} {_did(result)}; it was not run again for longer."


def _did(result: StoredResult) -> str:
    return "ran forward and backward" if trains(result.spec) != "trains" else "trained"


def _describe_refusal(result: StoredResult) -> str:
    size, probe = result.boundary.refused_batch_size, _refusal(result)
    cause = _CAUSES.get(probe.outcome if probe else Outcome.OUT_OF_MEMORY, "out of memory")
    where = f" in {probe.failed_phase.replace('_', ' ')}" if probe and probe.failed_phase else ""
    fresh = ", in a fresh process" if probe and probe.fresh_process else ""
    return f"Batch {size:,}: {cause}{where}{fresh}."


_FILES_SHOWN, _STARTS_SHOWN = 5, 10
_CAUSES = {Outcome.SIZE_LIMIT: "a limit of the library", Outcome.ERROR: "failed for another reason"}


def need(result: StoredResult) -> str | None:
    """Say how much memory a model that does not fit needed, and how much there was, where known."""
    return None if not _does_not_fit(result) else does_not_fit.describe_need(_refusal(result), result.limit_bytes)


def suggestions(result: StoredResult) -> list[str]:
    """Suggest what may make a model fit; empty where a size fits."""
    if not _does_not_fit(result) or is_own_training(result.spec):  # nothing is known that could be changed
        return []
    return does_not_fit.suggestions(
        _refusal(result),
        stored_workload(result.spec),
        result.device,
        optimizer=result.spec.get("optimizer", ""),
        is_checkpointed=bool(result.spec.get("gradient_checkpointing")),
    )


def _does_not_fit(result: StoredResult) -> bool:
    return result.largest is None and result.boundary.reason is not Reason.FOREIGN_MEMORY


def _refusal(result: StoredResult) -> Probe | None:
    return does_not_fit.refusing_probe(result.probes, result.boundary.refused_batch_size)


def paste(result: StoredResult) -> str | None:
    """Return the setting to paste, for the library that the model comes from."""
    if result.recommended is None:
        return None
    size = result.recommended.batch_size
    accumulation = _micro_batches(result)
    if is_own_training(result.spec):
        return _own_training(result.spec, size)
    workload = stored_workload(result.spec)
    if workload is not None and workload.library == "torchvision":
        return f"DataLoader(dataset, batch_size={size}, shuffle=True)\naccumulation_steps = {accumulation}"
    lines = [f"per_device_train_batch_size={size}", f"gradient_accumulation_steps={accumulation}"]
    lines += [f"{result.spec['precision']}=True"] if result.spec["precision"] not in ("fp32", PURE_BF16) else []
    lines += ["gradient_checkpointing=True"] if result.spec.get("gradient_checkpointing") else []
    weights = ["# the model loaded with dtype=torch.bfloat16"] if result.spec["precision"] == PURE_BF16 else []
    return "\n".join([*weights, "TrainingArguments(", *(f"    {line}," for line in lines), ")"])


def _samples_per_step_today(result: StoredResult) -> int:
    return result.current_batch_size * int(result.spec.get("accumulation_steps", 1))


def _micro_batches(result: StoredResult) -> int:
    """Return the fewest micro-batches of the recommended size that have as many samples as a step has today."""
    size = result.recommended.batch_size if result.recommended else 1
    return -(-_samples_per_step_today(result) // size)


def _own_training(spec: Mapping[str, Any], size: int) -> str | None:
    """Write the command or the call with the batch size; where it gets in elsewhere, say how it was set.

    None where the run is shared by a link, which shows neither.
    """
    if function := spec.get("function"):
        module, colon, name = function.rpartition(":")
        own = name.rpartition("<locals>.")[2]
        call = f"step = {own if own.replace('.', '').isidentifier() else 'make_step'}({size})"  # a lambda has no name
        return f"from {module} import {own.partition('.')[0]}\n\n{call}" if colon else call
    if not spec["command"]:
        return None
    line = shlex.join(part.replace(BATCH_SIZE, str(size)) for part in spec["command"])
    return line if spec["batch"] == "template" else f"# {BATCH_WAYS[spec['batch']]}: {size}\n{line}"


def paste_note(result: StoredResult) -> str | None:
    """Say what changes for the optimizer when the setting is pasted."""
    if result.recommended is None or result.recommended.batch_size == result.current_batch_size:
        return None
    size, today = result.recommended.batch_size, _samples_per_step_today(result)
    if size < today:
        steps = _micro_batches(result)
        total = f"{steps} x {size:,} = {steps * size:,} samples make one optimizer step"
        return f"{total}, as today." if steps * size == today else f"{total}; today it is {today:,}."
    return (
        f"Each optimizer step then sees {size:,} samples instead of {today:,}: review the learning rate. If you "
        f"accumulate gradients today, divide those steps by {times(size / today).removesuffix('x')} instead."
    )


def training_rows(result: StoredResult) -> list[tuple[str, str]]:
    """Return what a step of the largest size consumed and what each start took; empty for a model of the catalogue."""
    training = result.training
    if training is None:
        return []
    waiting = training.waiting_for_data_fraction
    rows = [
        (
            "Batches of a step",
            f"{training.micro_batches}{f' in each of {training.ranks} ranks' if training.ranks > 1 else ''}",
        ),
        ("Tokens of a step and rank", f"{training.tokens_per_step:,}" if training.tokens_per_step else ""),
        ("Peak", training.peak or ""),
        ("Peak of each rank", ", ".join(map(bytes_text, training.rank_peaks_bytes)) if training.ranks > 1 else ""),
        ("Waiting for data", "" if waiting is None else percent(waiting)),
        ("Starts", _describe_starts(training.starts)),
        ("Files it wrote", ", ".join(training.changed_files[:_FILES_SHOWN])),
    ]
    return [(name, text) for name, text in rows if text]


def _describe_starts(starts: Sequence[tuple[int, float]]) -> str:
    """Write "16 in 4 s, 48 in 5 s and 12 more"."""
    shown = ", ".join(f"{size:,} in {duration(seconds)}" for size, seconds in starts[:_STARTS_SHOWN])
    more = len(starts) - _STARTS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def loader_limit(result: StoredResult) -> str | None:
    """Say that the data loader limits the training, where it does."""
    if result.training is None:
        return None
    recommended = result.recommended.batch_size if result.recommended else None
    return describe_loader(result.training.throughputs, recommended, result.device.kind)


def estimate_evidence(estimate: StoredEstimate, result: StoredResult) -> Evidence:
    """Return what was predicted before the run, as a line under the certificate."""
    largest, row = estimate.largest_batch_size, compare_to_estimate(estimate, result)[0]
    size = "that no size fits" if not largest else f"up to {largest:,}"
    return Evidence("estimate", "estimate", f"Estimated {size}, before the run: {row.difference}.")


def timings(result: StoredResult) -> list[tuple[str, float]]:
    """Return the time of each part of the run that took any: what did not happen has no line."""
    parts = result.timings
    took = [
        ("Imports", parts.import_seconds),
        ("Building the model", parts.model_seconds),
        ("Estimating first", parts.estimate_seconds),
        ("Search", parts.search_seconds),
        ("Long run of the largest size", parts.soak_seconds),
        ("Smaller sizes for the curve", parts.curve_seconds),
        ("Comparing speed", parts.timing_seconds),
        ("Finding out what filled the memory", parts.explaining_seconds),
    ]
    shown = [(name, seconds) for name, seconds in took if duration(seconds) != duration(0)]
    return [*shown, ("Whole run", parts.total_seconds)]
