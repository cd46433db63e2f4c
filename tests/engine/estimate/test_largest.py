"""The largest length, rank or model with which a batch fits, and length x batch as a surface, by few estimates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SpecError
from engine.estimate.frontier import FrontierRow, budget_of, frontier_of, grid_of, specs_of
from engine.estimate.largest import MOST_TRIED, Largest, LargestOf, candidates_of, largest_of
from engine.estimate.predict import estimate
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec
from engine.text.units import GIB, KIB, MIB
from tests.engine.estimate.synthetic_models import card, model

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


SPEC = RunSpec("bert-tiny", sequence_length=64)


def row(input_size, safe, limits="memory"):
    return FrontierRow(input_size, input_size, safe + 1, safe, limits, input_size * (safe + 1), input_size * safe, ())


def surface(spec=SPEC, sizes=(32, 64, 128), **changes):
    """A sample takes as many MiB as it has tokens / 16."""
    specs = specs_of(spec, sizes)
    made = [
        estimate(
            replace(each, **changes),
            card(),
            model(sample_bytes=each.input_size * MIB // 16),
            seconds=1.0,
            versions={},
            batch_sizes=grid_of(each),
        )
        for each in specs
    ]
    return frontier_of(spec, made)


def test_budget_is_the_fewest_tokens_that_fit_at_any_of_the_lengths():
    budget = budget_of([row(128, 200), row(256, 90), row(512, 47)], 0.1)
    assert (budget.units, budget.decided_at) == (256 * 90, 256)
    assert (budget.from_input_size, budget.to_input_size, budget.margin_fraction) == (128, 512, 0.1)
    for length, safe in ((128, 200), (256, 90), (512, 47)):
        assert budget.units // length <= safe


def test_no_budget_where_a_length_allows_no_sample():
    assert budget_of([row(128, 200), row(512, 0)], 0.1) is None


def test_budget_that_the_largest_allowed_size_ended_says_that_more_may_fit():
    assert not budget_of([row(128, 100, "max_batch_size"), row(256, 90)], 0.1).is_bounded
    assert budget_of([row(128, 200, "max_batch_size"), row(256, 90)], 0.1).is_bounded


def test_surface_has_every_length_with_each_batch_size_of_the_grid():
    made = surface()
    assert [each.input_size for each in made.rows] == [32, 64, 128]
    assert all([cell.batch_size for cell in each.cells] == list(grid_of(SPEC)) for each in made.rows)
    for each in made.rows:
        assert all(cell.fits == (cell.batch_size <= each.largest_batch_size) for cell in each.cells)


def test_longer_samples_take_more_and_fit_in_smaller_batches():
    largest = [each.largest_batch_size for each in surface().rows]
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > largest[-1] > 0


def test_surface_is_written_as_json_with_its_unit_and_without_a_speed():
    document = surface().to_dict()
    assert (document["kind"], document["unit"]) == ("frontier", "tokens")
    assert document["rows"][0]["units_at_safe"] == 32 * document["rows"][0]["safe_batch_size"]
    assert "samples_per_second" not in str(document)


@pytest.mark.parametrize("sizes", [(128,), (64, 64), tuple(range(1, 40))])
def test_number_of_lengths_is_bounded(sizes):
    with pytest.raises(SpecError, match="frontier: give 2 to 16 different sizes"):
        specs_of(SPEC, sizes)


def test_length_that_the_model_does_not_take_is_refused_by_its_own_name():
    with pytest.raises(SpecError, match="sequence_length: bert-tiny takes"):
        specs_of(SPEC, (64, 100_000))


def test_sizes_of_images_are_counted_in_pixels():
    specs = specs_of(RunSpec("resnet18"), (64, 96))
    assert [each.image_size for each in specs] == [64, 96]
    made = [estimate(each, card(), model(), seconds=1.0, versions={}) for each in specs]
    assert frontier_of(specs[0], made).rows[1].units_per_sample == 96 * 96


@pytest.mark.slow
def test_budget_of_two_traced_lengths_holds_at_a_length_between_them():
    from engine.estimate.estimator import Estimator

    spec = RunSpec("bert-tiny", memory_limit_bytes=512 * MIB)
    specs = specs_of(spec, (64, 128, 256))
    safe = {each.input_size: Estimator(each).estimates([None])[0].safe_batch_size for each in specs}
    budget = min(64 * safe[64], 256 * safe[256])
    assert budget // 128 <= safe[128]
