"""PURE: a stored result in words, as far as its training or its spec tells more than its figures: lines to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ...describe.ranks import (
    describe_emulation,
    describe_group,
    describe_imbalance,
    describe_spread,
    rank_peaks,
)
from ...settings.catalog.stored_workload import stored_workload
from ...settings.spec import trained_settings
from ...settings.step_settings import PURE_BF16
from ...text.units import format_percent, round_percent
from ...trainings.script.notes.file_changes import Way
from ...trainings.script.result import LOADER_LIMITS_FROM, Training, describe_loader
from ...trainings.script.spec import BATCH_WAYS, with_batch_size
from .measured import Measured

_FILES_SHOWN = 5
_PROTECTIONS = {
    Way.LAYERS: "as they were: each start saw them through a layer, and what it changed there disappeared",
    Way.SAVING: "as they were: each was saved before a start changed it, and put back after the start",
    Way.NOTHING: "changed as the training does (--may-overwrite)",
}
_LOADER = f"From {round_percent(LOADER_LIMITS_FROM)} on the data loader is the limit."


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


def training_rows(result: Measured) -> list[tuple[str, str]]:
    training = result.training
    if training is None:
        return []
    waited = training.waiting_for_data_fraction
    waiting = "" if waited is None else f"{format_percent(waited)} of a step of the largest size. {_LOADER}"
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
        ("Waiting for data", waiting),
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
