"""Length x batch as a surface, and the budget of tokens that holds at every length."""

from dataclasses import replace

import pytest

from engine.errors import SpecError
from engine.estimate.frontier import FrontierRow, budget_of, frontier_of, grid_of, specs_of
from engine.estimate.predict import estimate
from engine.spec import RunSpec
from engine.text.units import MIB
from tests.engine.estimate.synthetic_models import card, model

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
