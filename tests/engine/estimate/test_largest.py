"""The largest length, rank or model with which a batch fits, found by few estimates."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.catalog import WORKLOADS
from engine.errors import SpecError
from engine.estimate.largest import MOST_TRIED, Largest, LargestOf, candidates_of, largest_of
from engine.spec import RunSpec
from engine.text.units import GIB, KIB, MIB

LLAMA = RunSpec("llama-3.2-1b", lora_rank=16, precision="bf16-pure")
MemoryOf = Callable[[RunSpec], int]


def searched(memory_of: MemoryOf, setting: str = "sequence_length", spec: RunSpec = LLAMA, **options: Any) -> Largest:
    given = {"limit_bytes": 24 * GIB, "margin_fraction": 0.2, **options}
    return largest_of(spec, LargestOf(setting), 1, memory_of, **given)


def linear(spec: RunSpec) -> int:
    return 3 * GIB + spec.input_size * 5 * MIB


def quadratic(spec: RunSpec) -> int:
    return 3 * GIB + spec.input_size * MIB + spec.input_size**2 * KIB


def bent(spec: RunSpec) -> int:
    """The optimizer step holds the peak of short texts, the backward pass that of long ones."""
    return max(8 * GIB, 3 * GIB + spec.input_size * 5 * MIB)


@pytest.mark.parametrize("memory_of", [linear, quadratic, bent])
@pytest.mark.parametrize("start", [2, 512, 100_000])
@pytest.mark.parametrize("limit_gib", [4, 10, 24, 80, 640])
def test_the_answer_fits_with_the_margin_and_the_next_value_does_not(
    memory_of: MemoryOf, start: int, limit_gib: int
) -> None:
    spec = RunSpec("llama-3.2-1b", sequence_length=start)
    found = searched(memory_of, spec=spec, limit_bytes=limit_gib * GIB)
    room = limit_gib * GIB / 1.2
    known = {each.value: each.memory_bytes for each in found.tried}
    assert len(known) <= MOST_TRIED
    if found.value is not None:
        assert known[found.value] <= room
    if found.too_large is not None:
        assert known[found.too_large] > room
    assert found.value is not None or found.too_large is not None


@pytest.mark.parametrize("memory_of", [linear, quadratic, bent])
@pytest.mark.parametrize("limit_gib", [10, 24, 80])
def test_usual_searches_end_with_both_neighbours_known(memory_of: MemoryOf, limit_gib: int) -> None:
    found = searched(memory_of, limit_bytes=limit_gib * GIB)
    values = [each.value for each in candidates_of(LLAMA, LargestOf.SEQUENCE_LENGTH)]
    assert found.value is not None
    assert (found.is_exact, found.too_large) == (True, values[values.index(found.value) + 1])


def test_memory_along_a_line_needs_few_estimates() -> None:
    found = searched(linear)
    assert (found.value, found.too_large, len(found.tried)) == (3456, 3584, 4)
    assert found.text == "At batch 1, 3,456 tokens fit with the margin of 20.0 %; 3,584 would not."


def test_a_search_that_ends_early_says_that_values_between_were_not_tried() -> None:
    found = searched(lambda spec: GIB if spec.input_size <= 3000 else 25 * GIB)
    if not found.is_exact:
        assert found.text.endswith("Values between these were not tried.")
    assert found.tried[-1].outcome == "does not fit"


def test_where_the_last_value_fits_the_model_and_not_the_memory_is_the_limit() -> None:
    found = searched(lambda _: GIB)
    assert (found.value, found.too_large, len(found.tried)) == (131_072, None, 3)
    assert found.text.endswith("131,072 tokens fit with the margin of 20.0 %: the model's own limit, not the memory's.")


def test_where_no_value_fits_the_smallest_is_named_with_what_it_takes() -> None:
    found = searched(lambda _: 30 * GIB)
    assert (found.value, found.too_large) == (None, 2)
    assert "not even 2 tokens fit with the margin of 20.0 %: estimated 30.0 GiB of 24.0 GiB" in found.text


def test_the_requested_value_is_tried_first_even_where_it_is_no_round_one() -> None:
    tried: list[int] = []
    searched(lambda spec: tried.append(spec.input_size) or linear(spec), spec=RunSpec("gpt2-lm", sequence_length=1001))
    assert tried[0] == 1001


def test_sizes_of_images_are_those_that_the_model_takes() -> None:
    sizes = [each.value for each in candidates_of(RunSpec("vit_b_16"), LargestOf.IMAGE_SIZE)]
    assert (sizes[0], sizes[-1], {int(size) % 16 for size in sizes}) == (32, 1024, {0})


def test_a_rank_is_searched_in_a_training_with_lora_alone() -> None:
    found = searched(lambda spec: 3 * GIB + (spec.lora_rank or 0) * 100 * MIB, "lora_rank")
    assert (found.value, found.too_large) == (160, 192)
    with pytest.raises(SpecError, match="largest: lora_rank is of a training with LoRA"):
        candidates_of(RunSpec("llama-3.2-1b"), LargestOf.LORA_RANK)


def test_models_are_those_of_the_family_by_their_parameters_with_inputs_of_one_size() -> None:
    members = candidates_of(RunSpec("qwen2.5-0.5b", sequence_length=300), LargestOf.MODEL)
    assert [each.value for each in members][::6] == ["qwen2.5-0.5b", "qwen3-8b"]
    assert {each.spec.sequence_length for each in members} == {300}
    found = searched(lambda spec: 4 * spec.workload.parameter_count, "model", RunSpec("llama-3.2-1b"))
    assert found.text == "At batch 1, Llama 3.2 3B fits with the margin of 20.0 %; Llama 3.1 8B would not."


def test_a_model_above_the_memory_limit_does_not_fit() -> None:
    spec = RunSpec("gpt2-lm", memory_limit_bytes=3 * GIB)
    found = searched(lambda each: 16 * each.workload.parameter_count, "model", spec, limit_bytes=3 * GIB)
    assert (found.value, found.too_large) == ("gpt2-lm", "gpt2-medium")


@pytest.mark.parametrize(
    ("spec", "setting", "why"),
    [
        (RunSpec("resnet"), "sequence_length", "resnet has no sequence_length; it takes image_size"),
        (RunSpec("mistral-7b"), "model", "no other model of the family of mistral-7b"),
        (RunSpec("bert"), "lora_rank", "give the lora_rank to start from"),
    ],
)
def test_what_the_training_does_not_have_is_refused_by_name(spec: RunSpec, setting: str, why: str) -> None:
    with pytest.raises(SpecError, match=f"largest: .*{why}"):
        candidates_of(spec, LargestOf(setting))


def test_a_family_is_the_models_whose_classes_have_one_name() -> None:
    families: dict[tuple[str, str], list[str]] = {}
    for each in WORKLOADS.values():
        families.setdefault((each.family, each.task), []).append(each.id)
    together = [set(ids) for ids in families.values() if len(ids) > 1]
    assert {"bert", "bert-tiny", "bert-large"} in together
    assert {"gpt2-lm", "gpt2-medium", "gpt2-large", "gpt2-xl"} in together
    assert {"gemma-2-2b", "gemma-3-270m", "gemma-3-1b"} in together
    assert {"resnet", "resnet18", "resnet101"} in together
    assert {"vit_b_16", "vit_l_16"} in together
