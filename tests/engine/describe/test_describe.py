"""What a result says of what does not fit, of its speed-up, of a script's sizes, and of today's size."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.describe.does_not_fit import describe_need, refusing_probe, script_changes, suggestions, ways_to_fit
from engine.describe.result import answer_of, is_short
from engine.describe.speed import claim_in
from engine.facts.result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason
from engine.facts.speed_rounds import SpeedClaim
from engine.public import DEFAULTS
from engine.questions.documents.measured import Measured
from engine.settings.catalog import WORKLOADS
from engine.text.today import DEFAULT_BATCH_SIZE, name_today
from engine.text.units import GIB, MIB
from tests.factories import make_probe, make_refusal, make_spec
from tests.factories.speeds import make_bound_result, make_kept_result, make_timed_result
from tests.in_words.documents import key_line

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


@pytest.mark.parametrize("missing", ["speedup_low", "speedup_high"])
def test_a_lower_bound_without_its_interval_is_not_claimed(missing: str) -> None:
    whole = make_bound_result()
    assert claim_in(whole) is SpeedClaim.AT_LEAST
    damaged = replace(whole, **{missing: None})
    assert claim_in(damaged) is SpeedClaim.NOTHING
    assert "at least" not in answer_of(damaged).text
    assert "at least" not in key_line(damaged)


def test_an_order_is_said_with_its_rounds_and_without_a_factor() -> None:
    whole = make_bound_result()
    assert whole.speed is not None
    speed = replace(whole.speed, claim=SpeedClaim.AHEAD, rounds=10, quiet_rounds=0, others_cores=1.3, cores=2)
    answer = answer_of(replace(whole, speed=speed, speedup=None, speedup_low=None, speedup_high=None))
    assert answer.sentence.endswith(" in 10 of 10 rounds.")
    assert is_short(answer.sentence)
    assert answer.notes[0] == "How much is not known: other programs used 1.3 of 2 cores and slow small batches more."


def test_today_s_size_that_is_kept_beside_other_work_says_what_may_be_missed() -> None:
    whole = make_kept_result()
    assert whole.speed is not None
    assert answer_of(whole).notes == ()
    speed = replace(whole.speed, quiet_rounds=0, others_cores=1.3, cores=2)
    notes = answer_of(replace(whole, speed=speed, device=replace(whole.device, kind="cpu"))).notes
    assert notes == ("A smaller gain shows on a quiet machine: other programs used 1.3 of 2 cores.",)


PHASE = "backward"


def fits(batch_size: int, mib: int, phase: str | None = PHASE):
    return make_probe(batch_size, peak_allocated_bytes=mib * MIB, peak_phase=phase)


def test_what_grows_with_the_batch_is_the_line_through_two_sizes_in_one_phase():
    found = script_changes([fits(10, 300), fits(40, 900), make_refusal(41, failed_phase=PHASE)])
    assert found is not None
    assert found.split is not None
    assert (found.split.growing_bytes, found.split.fixed_bytes) == (800 * MIB, 100 * MIB)
    assert found.split.bytes_per_sample == 20 * MIB


@pytest.mark.parametrize(
    "smaller",
    [
        fits(39, 890),  # too close: of two batches of real rows the difference is mostly noise
        fits(10, 300, "optimizer_step"),  # another line
        fits(10, 300, None),
        fits(10, 100),  # steeper than proportional: less than nothing would be left
        fits(10, 950),
    ],
)
def test_no_split_is_derived_from_sizes_that_are_not_on_one_line(smaller):
    found = script_changes([smaller, fits(40, 900), make_refusal(41, failed_phase=PHASE)])
    assert found is not None
    assert found.split is None


@pytest.mark.parametrize(
    ("phase", "first"),
    [
        ("backward", "Smaller micro-batches, gradients added up"),
        (None, "Smaller micro-batches, gradients added up"),
        ("optimizer_step", None),
        ("loading the model", None),
    ],
)
def test_changes_to_activations_are_named_only_where_activations_are_in_the_peak(phase, first):
    found = script_changes([make_refusal(1, failed_phase=phase)])
    assert found is not None
    assert next((label for label, _ in found.of_the_batch), None) == first
    assert found.of_the_model


def test_where_nothing_ran_out_of_memory_nothing_has_to_change():
    assert script_changes([fits(8, 100)]) is None


def test_the_size_that_is_assumed_is_nobodys_and_another_is_yours():
    assert DEFAULTS["current_batch_size"] == DEFAULT_BATCH_SIZE
    assert (name_today(DEFAULT_BATCH_SIZE), name_today(1_024)) == ("batch size 16", "your 1,024")


@pytest.mark.parametrize("made", [make_timed_result, make_kept_result])
def test_an_answer_never_calls_the_assumed_size_yours(made):
    usual, own = (answer_of(replace(made(), spec=make_spec(current_batch_size=size))).text for size in (16, 32))
    assert ("your" in usual.lower(), "batch size 16" in usual) == (False, True)
    assert "your 32" in own
