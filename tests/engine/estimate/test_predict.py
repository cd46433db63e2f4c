"""The spec of an estimate, and from a memory model and a card to figures."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import SpecError
from engine.estimate import gpus
from engine.estimate.known_errors import OF_LITGPT, REPORTED_LOW_FRACTION, known_error, margin_fraction
from engine.estimate.predict import _with_predecessors as with_predecessors
from engine.estimate.predict import check, estimate, estimate_at, largest_batch_size, limit_bytes_of
from engine.estimate.replay import Replays
from engine.estimate.spec import EstimateSpec, read_training
from engine.estimate.types import Estimate
from engine.questions.kinds import KINDS
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import SETTINGS, RunSpec
from engine.text.from_json import from_json
from engine.text.units import GIB, MIB
from engine.trainings.script.spec import TuneSpec
from tests.engine.estimate.synthetic_models import PARAMETER_BYTES, SAMPLE_BYTES, card, model

SPEC = RunSpec("bert-tiny")


def answer(spec=SPEC, gpu=None, **changes):
    return estimate(spec, gpu, model(), seconds=1.5, versions={"torch": "2.13.0"}, **changes)


def test_the_seven_kinds_add_up_to_the_peak():
    at = estimate_at(model(), card(), 16)
    kinds = at.by_kind
    assert (kinds.parameters_bytes, kinds.activations_bytes) == (PARAMETER_BYTES, 16 * SAMPLE_BYTES)
    assert kinds.workspaces_bytes >= card().cublas_workspace_bytes
    total = sum(getattr(kinds, name) for name in kinds.__slots__)
    assert total == at.peak_allocated_bytes <= at.peak_reserved_bytes < at.device_used_bytes
    assert (at.phase, at.operator) == ("backward", "mm_backward")


def test_the_cpu_rounds_nothing_and_reserves_nothing():
    at = estimate_at(model(sample_bytes=3), None, 7)
    assert at.peak_allocated_bytes == 2 * PARAMETER_BYTES + 3 * 7
    assert (at.peak_reserved_bytes, at.device_used_bytes, at.by_kind.workspaces_bytes) == (None, None, 0)


@pytest.mark.parametrize("gpu", [None, card()])
@given(limit_mib=st.integers(200, 3000))
def test_the_largest_size_fits_and_the_next_does_not(gpu, limit_mib):
    replays = Replays(model())
    largest = largest_batch_size(model(), gpu, limit_mib * MIB, 10_000, replays=replays)
    assert replays.fits(gpu, largest, limit_mib * MIB)
    assert not replays.fits(gpu, largest + 1, limit_mib * MIB)


@pytest.mark.parametrize("expandable_segments", [False, True])
@given(limit_mib=st.integers(200, 3000), size=st.integers(1, 2000))
@example(limit_mib=200, size=3)  # its peak is the limit exactly
def test_a_replay_under_a_limit_does_not_change_what_is_found_without_one(expandable_segments, limit_mib, size):
    limited, alone = (Replays(model(), expandable_segments) for _ in range(2))
    fits = limited.fits(card(), size, limit_mib * MIB)
    assert limited.known(card()) == {}  # a search begins from sizes that it requested
    assert limited.peak_bytes(card(), size) == alone.peak_bytes(card(), size)
    assert limited.fits(card(), size, limit_mib * MIB) == fits == alone.fits(card(), size, limit_mib * MIB)


@given(holes=st.sets(st.integers(1, 60)), start=st.integers(1, 60))
def test_a_size_counts_only_with_the_few_below_it(holes, start):
    largest = with_predecessors(lambda size: size not in holes, start)
    assert not holes & set(range(max(largest - 3, 1), largest + 1))
    assert largest <= start


def test_a_model_larger_than_the_card_does_not_fit_at_all():
    made = answer(gpu=card(GIB, context_bytes=GIB - 100 * MIB))
    assert (made.largest_batch_size, made.safe_batch_size, made.limits) == (0, 0, "does_not_fit")
    assert not made.at_batch_size(1).fits


def test_the_largest_size_asked_for_may_come_before_the_memory_ends():
    made = answer(RunSpec("bert-tiny", max_batch_size=50), card(8 * GIB))
    assert (made.largest_batch_size, made.limits) == (50, "max_batch_size")


@pytest.mark.parametrize("maximum", [*range(1, 9), 9])
@pytest.mark.parametrize("gpu", [None, card()])
def test_a_small_maximum_is_an_answer_too(gpu, maximum):
    made = answer(RunSpec("bert-tiny", max_batch_size=maximum), gpu)
    assert (made.largest_batch_size, made.safe_batch_size, made.limits) == (maximum, maximum, "max_batch_size")


def test_a_model_of_which_few_samples_fit_is_an_answer_too():
    made = estimate(SPEC, card(), model(sample_bytes=GIB), seconds=1, versions={})
    assert 1 <= made.largest_batch_size <= 3


def test_what_an_added_model_is_decides_its_margin(monkeypatch):
    added = replace(WORKLOADS["resnet18"], id="convnext_tiny")
    monkeypatch.setitem(WORKLOADS, "convnext_tiny", added)
    monkeypatch.setitem(SETTINGS["model"].choices, "convnext_tiny", "convnext_tiny")
    margins = [margin_fraction(RunSpec(model_id), None) for model_id in ("convnext_tiny", "resnet", "bert")]
    assert margins[0] == margins[1] != margins[2]


@pytest.mark.parametrize("model_id", ["bert", "resnet"])
@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_the_margin_on_a_card_covers_the_worst_that_was_ever_reported(model_id, vendor):
    spec, gpu = RunSpec(model_id), card(vendor=vendor)
    estimated_bytes = GIB * (1 - REPORTED_LOW_FRACTION)
    assert estimated_bytes * (1 + margin_fraction(spec, gpu)) >= GIB * 0.9999
    known = known_error(spec, gpu)
    assert known is None if vendor == "amd" else known.worst_fraction == REPORTED_LOW_FRACTION


IN_4_BITS = RunSpec("bert-tiny", lora_rank=4, load_in_4bit=True)


@pytest.mark.parametrize("gpu", [None, gpus.find("a10")], ids=["cpu", "a10"])
def test_the_margin_of_weights_of_4_bits_is_at_least_that_of_the_worst_family(gpu):
    worst = max(margin_fraction(RunSpec(model_id), gpu) for model_id in ("bert", "resnet"))
    assert margin_fraction(IN_4_BITS, gpu) >= worst
    assert (known_error(IN_4_BITS, gpu) is None) == (gpu is None)  # no real step on a CPU was compared


def test_a_known_error_rests_on_trainings_of_the_same_settings():
    lora, plain = RunSpec("llama-3.2-1b", lora_rank=8), RunSpec("llama-3.2-1b")
    sources = [known_error(spec, gpus.find("a10")).source for spec in (lora, IN_4_BITS, plain)]
    assert [source.partition(":")[0] for source in sources] == ["LoRA", "4 bits", "all weights"]


def test_a_profile_of_litgpt_has_the_error_of_other_layers_than_its_own():
    lora = RunSpec("llama-3.2-1b", lora_rank=8)
    own, of_litgpt = (known_error(spec, gpus.find("a10")) for spec in (lora, replace(lora, like="litgpt-lora")))
    assert of_litgpt.typical_fraction > own.typical_fraction
    assert of_litgpt.worst_fraction > own.worst_fraction
    assert of_litgpt.source.endswith(f"the figures are of {of_litgpt.runs} with {OF_LITGPT}")


def test_a_setting_that_was_never_compared_is_named():
    never = replace(RunSpec("llama-3.2-1b", lora_rank=8), sequences="padded")
    assert known_error(never, gpus.find("a10")).source.endswith("; none with padded or packed rows")
    assert known_error(RunSpec("resnet"), gpus.find("a10")).source.startswith("published runs")


def test_the_safe_size_fits_with_the_stated_margin():
    made = answer(gpu=card())
    at = made.at_batch_size(made.safe_batch_size)
    assert 0 < made.safe_batch_size < made.largest_batch_size
    assert at.peak_reserved_bytes * (1 + made.margin_fraction) <= made.limit_bytes
    assert made.margin_fraction == margin_fraction(SPEC, card())


def test_an_exact_size_is_answered_beside_the_current_one():
    sizes = {at.batch_size for at in answer(gpu=card(), batch_sizes=(37,)).at}
    assert {37, SPEC.current_batch_size} <= sizes


def test_a_memory_limit_counts_reserved_bytes_and_no_context():
    limited = RunSpec("bert-tiny", memory_limit_bytes=2 * GIB)
    assert limit_bytes_of(limited, card(24 * GIB)) == 2 * GIB
    assert limit_bytes_of(SPEC, card(4 * GIB, context_bytes=GIB)) == 3 * GIB


@pytest.mark.parametrize(
    ("gpu", "precision", "allowed"),
    [
        ("t4", "bf16", True),
        ("t4", "fp16", True),
        ("t4", "tf32", False),
        ("a10", "bf16", True),
        ("mi300x", "bf16", True),
        ("mi300x", "tf32", False),
    ],
)
def test_what_the_engine_would_refuse_on_a_card_is_refused(gpu, precision, allowed):
    spec = RunSpec("bert-tiny", precision=precision)
    if allowed:
        check(spec, gpus.find(gpu))
    else:
        with pytest.raises(SpecError, match="precision"):
            check(spec, gpus.find(gpu))


def test_a_limit_above_the_card_is_refused():
    with pytest.raises(SpecError, match="memory_limit_bytes"):
        check(RunSpec("bert-tiny", memory_limit_bytes=100 * GIB), gpus.find("a10"))


def test_an_estimate_comes_back_from_json_as_it_went():
    made = answer(gpu=card())
    assert from_json(Estimate, made.to_dict()) == made


def test_expandable_segments_are_not_estimated_for_a_cpu():
    spec = RunSpec("bert", expandable_segments=True)
    check(spec, gpus.find("a10"))
    with pytest.raises(SpecError, match="expandable_segments"):
        check(spec, None)


TRAINING = RunSpec("bert-tiny", current_batch_size=4)


def test_a_stored_spec_is_read_back_by_the_row_of_the_kind() -> None:
    spec = EstimateSpec(TRAINING, "a10", "grid", (128, 64), "model")
    own = {"gpu": "a10", "what_to_change": "grid", "frontier": [64, 128], "largest": "model"}
    document = spec.to_dict()
    assert document == TRAINING.to_dict() | own
    read = KINDS["estimate"].read_spec(document)
    assert isinstance(read, EstimateSpec)
    assert read.to_dict() == document
    assert read_training(document) == read.training == read_training(TRAINING.to_dict()) == TRAINING


def test_a_training_alone_is_estimated_for_all_cards() -> None:
    assert EstimateSpec.from_dict(TRAINING.to_dict()) == EstimateSpec(TRAINING, "all", "", ())


@pytest.mark.parametrize(
    ("member", "value", "why"),
    [
        ("gpu", 7, "must be text"),
        ("gpu", "a1O", "a10"),
        ("what_to_change", None, "must be text"),
        ("what_to_change", "everything", "must be one of"),
        ("frontier", "64,128", "list of whole numbers"),
        ("frontier", [64, True], "list of whole numbers"),
        ("frontier", [64, 64], "give each size once"),
        ("largest", 7, "must be text"),
        ("largest", "batch_size", "must be one of sequence_length, image_size, lora_rank, model"),
        ("largest", "image_size", "bert-tiny has no image_size; it takes sequence_length"),
        ("no_such", 1, "unknown key"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(member: str, value: object, why: str) -> None:
    with pytest.raises(SpecError, match=f"{member}: .*{why}"):
        EstimateSpec.from_dict(TRAINING.to_dict() | {"gpu": "a10", member: value})


def test_what_is_largest_is_searched_for_a_batch_of_one_where_none_is_given() -> None:
    asked = {"model": "bert-tiny", "gpu": "a10", "largest": "sequence_length"}
    assert EstimateSpec.from_dict(asked).training.current_batch_size == 1
    assert EstimateSpec.from_dict(asked | {"current_batch_size": 8}).training.current_batch_size == 8


def test_what_is_largest_is_asked_of_one_card() -> None:
    with pytest.raises(SpecError, match="largest: is for one GPU"):
        EstimateSpec(TRAINING, largest="model")


def test_a_command_has_no_training_that_could_be_estimated() -> None:
    with pytest.raises(SpecError, match="unknown key"):
        read_training(TuneSpec(("train", "{batch_size}")).to_dict())
