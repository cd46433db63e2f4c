"""What does not fit is told how much it needed, and gets advice for what held the memory."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalog import WORKLOADS
from engine.describe.does_not_fit import describe_need, refusing_probe, suggestions, ways_to_fit
from engine.documents.measured import Measured
from engine.results.result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason
from engine.text.units import GIB, MIB

CARD = DeviceFacts("cuda:0", "cuda", "A card", 24 * GIB, limit_bytes=24 * GIB)
HELD = replace(CARD, limit_bytes=GIB)
BUDGET = Probe(1, Outcome.OUT_OF_MEMORY, error_type="BudgetExceeded", peak_allocated_bytes=90 * MIB, steps=1)
CUDA_TEXT = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 13 MiB"
BY_CARD = Probe(1, Outcome.OUT_OF_MEMORY, error_message=CUDA_TEXT)


def advice(phase, optimizer="adamw", device=CARD, *, model="bert", is_checkpointed=False):
    refusal = Probe(1, Outcome.OUT_OF_MEMORY, failed_phase=phase)
    tries = suggestions(refusal, WORKLOADS[model], device, optimizer=optimizer, is_checkpointed=is_checkpointed)
    return [line.split(":")[0].rstrip(".") for line in tries]


@pytest.mark.parametrize(
    ("phase", "optimizer", "expected"),
    [
        ("optimizer_step", "adamw", ["An optimizer with less state"]),
        ("optimizer_step", "momentum", ["An optimizer with less state"]),
        ("optimizer_step", "sgd", []),
        ("loading the model", "adamw", []),
        ("forward", "sgd", ["Gradient checkpointing", "A smaller sequence length"]),
        ("backward", "adamw", ["Gradient checkpointing", "A smaller sequence length", "An optimizer with less state"]),
        (None, "none", ["Gradient checkpointing", "A smaller sequence length"]),
    ],
)
def test_activations_are_advised_on_only_where_they_were_part_of_the_peak(phase, optimizer, expected):
    assert advice(phase, optimizer)[1:] == expected


def test_what_is_in_use_or_not_offered_is_not_advised():
    assert "Gradient checkpointing" not in advice("forward", is_checkpointed=True)
    assert advice("forward", "sgd", model="retinanet-resnet50")[1:] == ["A smaller image size"]


def test_a_higher_limit_is_advised_only_where_the_device_has_more():
    assert advice("forward", device=HELD)[0] == "A higher memory limit"
    assert advice("forward", device=CARD)[0] == "A device with more memory"


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (BUDGET, "Batch 1 needed at least 90.0 MiB; 70.0 MiB were available."),
        (
            replace(BUDGET, failed_phase="evaluation"),
            "Batch 1 needed at least 90.0 MiB in the evaluation; 70.0 MiB were available.",
        ),
        (
            replace(BUDGET, failed_phase="optimizer_step"),
            "Batch 1 needed at least 90.0 MiB in the optimizer step; 70.0 MiB were available.",
        ),
        (
            replace(BY_CARD, peak_reserved_bytes=60 * MIB, failed_phase="forward"),
            "Batch 1 requested another 20.00 MiB after 60.0 MiB in the forward pass; 70.0 MiB were available.",
        ),
        (
            replace(BY_CARD, failed_phase="loading the model"),
            "Batch 1 requested another 20.00 MiB while the model was loaded; 70.0 MiB were available.",
        ),
        (Probe(1, Outcome.OUT_OF_MEMORY, error_message="std::bad_alloc"), None),
        (Probe(1, Outcome.SIZE_LIMIT, error_message="INT_MAX"), None),
        (None, None),
    ],
)
def test_how_much_was_needed_is_said_where_it_is_known(refusal, expected):
    assert describe_need(refusal, 70 * MIB) == expected


def test_the_probe_of_a_fresh_process_decides():
    used = Probe(9, Outcome.OUT_OF_MEMORY)
    fresh = Probe(9, Outcome.OUT_OF_MEMORY, Purpose.CONFIRM, fresh_process=True)
    assert refusing_probe([fresh, used, Probe(8, Outcome.FITS)], 9) is fresh
    assert refusing_probe([Probe(8, Outcome.FITS)], 8) is None


@pytest.mark.parametrize(("phase", "tries"), [("evaluation", ["A smaller batch in the evaluation"]), ("backward", [])])
def test_a_script_whose_evaluation_does_not_fit_is_told_that_its_batch_is_another(phase, tries):
    result = Measured.from_dict(json.loads(Path("tests/factories/tuned_function.json").read_text())["result"])
    refused = Boundary(0, certified=False, refused_batch_size=1, reason=Reason.DOES_NOT_FIT)
    result = replace(result, boundary=refused, largest=None, probes=(replace(BUDGET, failed_phase=phase),))
    assert [line.split(",")[0] for line in ways_to_fit(result)[1]] == tries
