"""The texts of a result page: its headline, the reserve, the comparison of speeds, the setting to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from analysis.presentation.estimate_error import SAME, compare_to_estimate
from analysis.presentation.formatting import bytes_text, duration, percent, round_percent
from analysis.presentation.labels import model_name, place
from engine.catalog.stored_workload import stored_workload
from engine.describe.answer import Answer
from engine.describe.boundary import CertificateLine, answer_of_check, trains_with, verbs
from engine.describe.grade import describe_emulation
from engine.describe.key_figures import SAVES, key_figures
from engine.describe.rank_peaks import describe_group, describe_imbalance, describe_spread, rank_peaks
from engine.describe.reserve import keeps_reserve
from engine.describe.result import answer_of, parts_of_time
from engine.describe.speed import speed_of
from engine.documents.estimated import EstimatedCard
from engine.documents.measured import Measured
from engine.results.result import Reason
from engine.results.speed_rounds import Stage
from engine.settings.step_settings import PURE_BF16
from engine.spec import trained_settings
from engine.tune.result import LOADER_LIMITS_FROM, Training, describe_loader
from engine.tune.spec import BATCH_WAYS, with_batch_size
from engine.tune.start.file_changes import Way

_NAME_WORDS = 6
"""Words of a model's name in the leading sentence; the rest of a longer name stands among the facts."""


def headline(result: Measured) -> Answer:
    if result.is_check:  # one size was run: there is nothing to choose
        return answer_of_check(result)
    if result.largest is None:
        words = model_name(result.spec["model"]).split()
        name = " ".join([*words[:_NAME_WORDS], *(["…"] if len(words) > _NAME_WORDS else [])])
        return Answer(f"{name} {_why_nothing_fits(result)}")
    return answer_of(result)


def reach(result: Measured) -> str:
    """Write "On this CPU, limited to 1 GiB, BERT tiny trains with up to 8 samples."; empty where nothing trained."""
    if result.largest is None:
        return ""
    where, name = place(result.device, result.limit_bytes), model_name(result.spec["model"])
    trains, _ = verbs(result.spec)
    return f"{where} {name} {trains_with(result, result.largest.batch_size, trains)}."


def verdict(result: Measured) -> str:
    """Return all of it as one text, for a message that has no page around it."""
    if result.largest is None and not result.is_check:
        where, name = place(result.device, result.limit_bytes), model_name(result.spec["model"])
        return f"{where} {name} {_why_nothing_fits(result)}"
    saves = [f"{each.title} {each.value}." for each in key_figures(result) if each.title == SAVES and each.is_known]
    return " ".join([headline(result).sentence, *speed_of(result).notes, *saves, *filter(None, [reach(result)])])


def _why_nothing_fits(result: Measured) -> str:
    if result.boundary.reason is Reason.DOES_NOT_FIT:
        return "does not fit: even batch 1 runs out of memory."
    if result.boundary.reason is Reason.FOREIGN_MEMORY:
        return "could not be measured: other programs held the memory."
    return "was not measured to the end: no batch size finished."


def describe_reserve(result: Measured) -> str:
    if result.recommended is None or result.free_bytes is None or result.speed is None:
        return ""
    share = percent(max(result.free_bytes, 0) / result.limit_bytes)
    left = f"{result.recommended.batch_size:,} leaves {bytes_text(max(result.free_bytes, 0))} free, {share}"
    requested = f"requested: at least {round_percent(result.speed.reserve_fraction)}"
    if keeps_reserve(result, result.recommended):
        return f"{left}; {requested}."
    other = result.largest_with_reserve
    if other is None:
        return f"{left}; {requested}, which no measured size leaves."
    return f"{left}; {requested}. The largest that leaves it is {other.batch_size:,}."


def describe_timing(result: Measured) -> str:
    speed = result.speed
    if speed is None or duration(speed.seconds) == duration(0):
        return ""
    took, text = duration(speed.seconds), ""
    left_out = sum(each.stage is Stage.EVALUATION for each in result.speed_rounds) - speed.rounds
    if speed.rounds:
        counted = f"{speed.rounds} of {speed.rounds + left_out} rounds in {took} count"
        text = counted if left_out > 0 else f"{speed.rounds} rounds in {took}"
        text += f", {speed.quiet_rounds or 'none'} of them quiet" if speed.quiet_rounds < speed.rounds else ""
    text = text or f"The comparison of speeds took {took}"
    text += "; other programs ran beside the rest" if left_out > 0 else ""
    if speed.left_out_batch_sizes:
        sizes = ", ".join(f"{size:,}" for size in speed.left_out_batch_sizes)
        text += f". Not timed, because they did not fit together with the others: {sizes}"
    return f"{text}."


_FILES_SHOWN = 5
_PROTECTIONS = {
    Way.LAYERS: "as they were: each start saw them through a layer, and what it changed there disappeared",
    Way.SAVING: "as they were: each was saved before a start changed it, and put back after the start",
    Way.NOTHING: "changed as the training does (--may-overwrite)",
}


def paste(result: Measured) -> str | None:
    if result.recommended is None:
        return None
    size, spec = result.recommended.batch_size, trained_settings(result.spec)
    accumulation = _micro_batches(result)
    if result.training is not None and not result.spec.get("catalogue"):
        return own_setting(result.spec, size)
    workload = stored_workload(spec)
    if workload is not None and workload.library == "torchvision":
        return f"DataLoader(dataset, batch_size={size}, shuffle=True)\naccumulation_steps = {accumulation}"
    lines = [f"per_device_train_batch_size={size}", f"gradient_accumulation_steps={accumulation}"]
    lines += [f"{spec['precision']}=True"] if spec["precision"] not in ("fp32", PURE_BF16) else []
    lines += ["gradient_checkpointing=True"] if spec.get("gradient_checkpointing") else []
    weights = ["# the model loaded with dtype=torch.bfloat16"] if spec["precision"] == PURE_BF16 else []
    return "\n".join([*weights, "TrainingArguments(", *(f"    {line}," for line in lines), ")"])


def _samples_per_step_today(result: Measured) -> int:
    return result.current_batch_size * int(trained_settings(result.spec).get("accumulation_steps", 1))


def _micro_batches(result: Measured) -> int:
    size = result.recommended.batch_size if result.recommended else 1
    return -(-_samples_per_step_today(result) // size)


def own_setting(spec: Mapping[str, Any], size: int) -> str | None:
    """Write the command or call with the batch size, or say how it was set; None for a run shared by a link."""
    if function := spec.get("function"):
        module, colon, name = function.rpartition(":")
        own = name.rpartition("<locals>.")[2]
        call = f"step = {own if own.replace('.', '').isidentifier() else 'make_step'}({size})"  # a lambda has no name
        return f"from {module} import {own.partition('.')[0]}\n\n{call}" if colon else call
    if not spec["command"]:
        return None
    line = shlex.join(with_batch_size(part, size) for part in spec["command"])
    if batch_in := spec.get("batch_in"):
        file, _, key = batch_in.rpartition(":")
        return f"# {key}: {size} in {file}\n{line}"
    return line if spec["batch"] == "template" else f"# {BATCH_WAYS[spec['batch']]}: {size}\n{line}"


def paste_note(result: Measured) -> str | None:
    if result.recommended is None or result.recommended.batch_size == result.current_batch_size:
        return None
    size, today = result.recommended.batch_size, _samples_per_step_today(result)
    ranks = int(trained_settings(result.spec).get("ranks", 1))
    if size < today:
        steps = _micro_batches(result)
        times, samples = f"{ranks} ranks x " if ranks > 1 else "", ranks * steps * size
        total = f"{times}{steps} x {size:,} = {samples:,} samples make one optimizer step"
        return f"{total}, as today." if steps * size == today else f"{total}; today it is {ranks * today:,}."
    return (
        f"Each optimizer step then sees {ranks * size:,} samples instead of {ranks * today:,}: review the learning "
        "rate, or accumulate fewer gradients if you do so today."
    )


_LOADER = f"From {round_percent(LOADER_LIMITS_FROM)} on the data loader is the limit."


def training_rows(result: Measured) -> list[tuple[str, str]]:
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
        ("Peak", (training.peak or "").removeprefix("the peak of ").replace(" is ", ", ", 1)),
        ("Global batch", "; ".join(_groups(result, training)) if training.ranks > 1 else ""),
        ("Ranks", " ".join(describe_emulation(result.spec, result.device.kind))),
        ("Imbalance", describe_imbalance(rank_peaks(result.spec, training.rank_peaks_bytes))),
        ("Spread", describe_spread(result) if training.ranks > 1 and not result.is_emulated else ""),
        ("Waiting for data", "" if waiting is None else f"{percent(waiting)} of a step of the largest size. {_LOADER}"),
        ("Seen", "" if training.unseen is None else training.unseen.describe(result.boundary.soak_steps or 0)),
        ("Files it wrote", ", ".join(training.changed_files[:_FILES_SHOWN])),
        ("Your files", "" if training.protection is None else _PROTECTIONS[training.protection]),
    ]
    return [(name, text) for name, text in rows if text]


def _groups(result: Measured, training: Training) -> Iterator[str]:
    for point in dict.fromkeys(p.batch_size for p in (result.recommended, result.largest) if p is not None):
        yield describe_group(point, training.ranks, training.micro_batches)


def loader_limit(result: Measured) -> str | None:
    if result.training is None:
        return None
    recommended = result.recommended.batch_size if result.recommended else None
    return describe_loader(result.training.throughputs, recommended, result.device.kind)


def estimate_evidence(estimate: EstimatedCard, result: Measured) -> CertificateLine:
    largest, row = estimate.largest_batch_size, compare_to_estimate(estimate, result)[0]
    size, difference = f"{largest:,}" if largest else "no size fits", row.difference
    text = f"Predicted before the run: {size}, {'exact' if difference == SAME else difference}."
    return CertificateLine("estimate", "estimate", text)


def timings(result: Measured) -> list[tuple[str, float]]:
    parts = [(name, seconds) for _, name, seconds in parts_of_time(result.timings)]
    return [*parts, ("Whole run", result.timings.total_seconds)]
