"""A script's Change tab: what grows with the batch is derived from two sizes, and only what can help is named."""

import pytest

from engine.describe.script_changes import script_changes
from engine.text.units import MIB
from tests.factories import make_probe, make_refusal

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
