"""The answer to a question for an estimate, made from what is stored: nothing is computed, and nothing is started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from analysis.models import ALL_GPUS, MatrixCell
from analysis.pages.kinds.estimate import cards_context
from analysis.presentation.estimate_summary import headline
from analysis.presentation.labels import describe_settings, model_name, settings_in_full, short_device_name
from analysis.presentation.unreadable import read_stored
from analysis.runs.earlier.estimates import FoundEstimate, other_cells, stored_estimates
from analysis.runs.gpu_catalog import gpu_ids, gpu_name, list_prices, prices
from engine.errors import SpecError
from engine.estimate.spec import EstimateSpec
from engine.questions.documents.estimated import EstimatedCard
from engine.settings.catalog import WORKLOADS
from engine.settings.step_settings import OPTIMIZER_LABELS


def answer(question: EstimateSpec, asked: QueryDict, table: QueryDict, *, is_private: bool) -> dict[str, Any]:
    """Return the context, with `title` and `found`; `is_private` leaves out the lab's prices and calibrations."""
    spec, gpu = question.training, question.gpu
    found = stored_estimates(spec, gpu)
    known = {
        "asked": [model_name(spec.model), *_settings(question), f"batch {spec.current_batch_size:,}"],
        "place": f"all {len(gpu_ids())} GPUs" if gpu == ALL_GPUS else short_device_name(gpu_name(gpu)),
        "current_batch_size": spec.current_batch_size,
        "is_answered": bool(found),
    }
    if not found:
        return known | {"title": "Not estimated yet", "others": [_other(cell) for cell in other_cells(spec, gpu)]}
    estimates = [_read(each, is_private=is_private) for each in found]
    training = spec.to_dict()
    if gpu != ALL_GPUS:
        title = headline(estimates[0], training)
        return known | {"title": title, "estimate": estimates[0], "run": found[0].run}
    missing, unable = _not_estimated(question, {each.gpu.id for each in estimates})
    known_prices, newest = list_prices() if is_private else prices(), max(found, key=lambda each: each.run.pk)
    cards = cards_context(estimates, training, unable, known_prices, table, asked)
    return known | cards | {"missing": missing, "unable": unable, "run": newest.run}


def _not_estimated(question: EstimateSpec, known: set[str]) -> tuple[list[str], list[str]]:
    missing, unable = [], []
    for gpu_id in gpu_ids():
        if gpu_id in known:
            continue
        try:
            replace(question, gpu=gpu_id)
        except SpecError:
            unable.append(short_device_name(gpu_name(gpu_id)))
        else:
            missing.append(short_device_name(gpu_name(gpu_id)))
    return missing, unable


def _read(found: FoundEstimate, *, is_private: bool) -> EstimatedCard:
    estimate = read_stored(EstimatedCard.from_dict, found.document)
    return replace(estimate, gpu=replace(estimate.gpu, calibrated=False)) if is_private else estimate


def _other(cell: MatrixCell) -> tuple[str, str, str]:
    optimizer = OPTIMIZER_LABELS.get(cell.optimizer, cell.optimizer)
    gpu, size = short_device_name(cell.card_name), f"input size {cell.input_size:,}"
    text = " · ".join(filter(None, [gpu, cell.precision, optimizer, size, cell.settings]))
    answered = f"up to {cell.safe_batch_size:,}" if cell.safe_batch_size else "does not fit"
    workload = WORKLOADS.get(cell.model)
    if cell.settings or workload is None:
        return text, answered, ""
    asked = {"model": cell.model, "gpu": cell.card, "precision": cell.precision, "optimizer": cell.optimizer}
    return text, answered, urlencode({**asked, workload.input_field: cell.input_size})


def _settings(question: EstimateSpec) -> list[str]:
    spec = question.training.to_dict()
    return settings_in_full(describe_settings(spec), spec)
