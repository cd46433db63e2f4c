"""Sentences and rows of estimates: pure, and never more certain than the figures."""

from typing import Any

import pytest

from analysis.presentation.estimate_error import describe_difference
from analysis.presentation.estimate_summary import (
    describe_price,
    estimate_bars,
    estimate_stack,
    figures,
    gpu_rows,
    how_rows,
    key_figures,
    kind_rows,
)
from analysis.presentation.labels import settings_in_full
from analysis.runs.gpu_catalog import Price
from engine.describe.estimate import describe_known_error
from engine.documents.estimated import EstimatedCard
from engine.estimate.gpus import gpus
from engine.spec import RunSpec
from engine.text.units import GIB
from tests.fake_engine import estimate_of

SPEC = RunSpec(model="bert", current_batch_size=16)


def read(gpu: str = "a10", **changes: Any) -> EstimatedCard:
    return EstimatedCard.from_dict(estimate_of(SPEC, gpus()[gpu]) | changes)


@pytest.mark.parametrize(
    ("changes", "today", "said"),
    [
        ({}, 16, ["82 %", "up to 89", "not estimated"]),
        ({}, 120, ["does not fit", "up to 89", "not estimated"]),
        ({"safe_batch_size": 0}, 16, ["82 %", "none", "not estimated"]),
        ({"largest_batch_size": 0}, 16, []),
    ],
)
def test_the_three_figures_of_an_estimate_claim_no_saving(changes: dict[str, Any], today: int, said: list[str]) -> None:
    assert [figure.value for figure in key_figures(read(**changes), today)] == said


def test_a_card_held_to_a_limit_is_shown_against_the_limit():
    estimate = read(spec={**SPEC.to_dict(), "memory_limit_bytes": 8 * GIB})
    assert {bar.capacity_bytes for bar in estimate_bars(estimate, 16)} == {8 * GIB}


def test_the_card_that_takes_most_comes_first_and_one_that_takes_nothing_last():
    estimates = [read("t4", largest_batch_size=0), read("a10"), read("a100-40gb", largest_batch_size=200)]
    rows = gpu_rows(estimates, 16, {})
    assert [row.estimate.gpu.id for row in rows] == ["a100-40gb", "a10", "t4"]
    assert [row.largest_percent for row in rows] == ["100.00%", "49.50%", "0.00%"]


def test_a_size_that_was_not_estimated_has_no_bar_length():
    bar = estimate_bars(read(at=[]), 16)[0]
    assert (bar.used_bytes, bar.label) == (None, "not estimated")


def test_the_stack_is_of_the_safe_size_and_adds_up():
    stack = estimate_stack(read(), 16)
    assert stack.batch_size == 89
    assert sum(piece.fraction for piece in stack.slices) == pytest.approx(1)


def test_an_approximate_estimate_says_why_it_is():
    rows = dict(how_rows(read(method="approximate_fake_cpu", approximate_because="CUDA is in use")))
    assert rows["Approximate because"] == "CUDA is in use"
    assert "Approximate because" not in dict(how_rows(read()))


def test_kinds_that_hold_nothing_have_no_row():
    assert "buffers" not in [row.name for row in kind_rows(read().points)]


def test_a_price_says_whose_it_is_and_of_when():
    price = Price(1.29, "the list", "2026-11-01", True)
    assert describe_price(price) == "$1.29 an hour (lab's price, 2026-11-01: the list)"
    assert describe_price(None) == "not known"


def test_an_unknown_error_is_never_shown_as_none_at_all():
    assert describe_known_error(None) == "not known for this model: measure it"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(0.008, "0.8 % over"), (-0.031, "3.1 % under"), (0.0001, "the same"), (0.0, "the same"), (None, "not comparable")],
)
def test_a_difference_is_said_with_its_direction(error, expected):
    assert describe_difference(error) == expected


def test_a_size_where_the_search_stopped_is_labelled_in_figures_and_rows():
    capped = read(largest_batch_size=65_536, safe_batch_size=65_536, limits="max_batch_size")
    assert [value for _, value, _ in figures(capped, 16)][:2] == ["65,536 or more"] * 2
    (row,) = gpu_rows([capped], 16, {})
    assert (row.largest_text, row.safe_text) == ("65,536 or more",) * 2
    assert [value for _, value, _ in figures(read(), 16)][:2] == ["89", "99"]


def test_memory_between_two_estimated_sizes_is_a_bound_and_said_so():
    estimate = read()
    exact = estimate.memory_at_most(16)
    assert exact == estimate.memory_bytes(estimate.at_batch_size(16))
    assert exact < estimate.memory_at_most(50) < estimate.memory_at_most(89)
    assert estimate.memory_at_most(4) == exact, "below the smallest estimated size that one's memory is the bound"
    assert estimate.memory_at_most(100) is None
    assert figures(estimate, 50)[2][1].startswith("at most ")
    assert [bar.title for bar in estimate_bars(estimate, 50)] == ["Today, at most", "With margin"]


def test_the_cheapest_that_fits_is_the_one_row_that_is_marked():
    prices = {gpu: Price(cost, "", "", False) for gpu, cost in (("t4", 0.2), ("a10", 0.6), ("a100-40gb", 1.3))}
    rows = gpu_rows([read("t4", safe_batch_size=15), read("a10"), read("a100-40gb"), read("l4")], 16, prices)
    assert [row.estimate.gpu.id for row in rows if row.is_cheapest] == ["a10"]


def test_half_precision_says_what_the_weights_are():
    assert settings_in_full(["bf16", "AdamW"], {"precision": "bf16"}) == ["bf16 autocast, fp32 weights", "AdamW"]
