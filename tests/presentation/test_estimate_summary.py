"""Sentences and rows of estimates: pure, and never more certain than the figures."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.presentation.estimate_error import describe_difference
from analysis.presentation.estimate_summary import (
    describe_error,
    describe_price,
    estimate_bars,
    estimate_stack,
    gpu_rows,
    headline,
    headline_of_all,
    how_rows,
    kind_rows,
    with_article,
)
from analysis.presentation.stored_estimate import StoredEstimate, read_estimate
from analysis.runs.gpu_catalog import Price
from engine.estimate.gpus import gpus
from engine.spec import RunSpec
from engine.units import GIB
from tests.fake_engine import estimate_of

SPEC = RunSpec(model="bert", current_batch_size=16)


def read(gpu: str = "a10", **changes: Any) -> StoredEstimate:
    return read_estimate(estimate_of(SPEC, gpus()[gpu]) | changes)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("A100 40GB", "An A100 40GB"),
        ("H100", "An H100"),
        ("RTX 4090", "An RTX 4090"),
        ("L4", "An L4"),
        ("T4", "A T4"),
        ("V100", "A V100"),
        ("GH200", "A GH200"),
        ("Tesla T4", "A Tesla T4"),
        ("AMD Instinct MI300X", "An AMD Instinct MI300X"),
    ],
)
def test_the_article_is_the_one_that_is_spoken(name, sentence):
    assert with_article(name) == sentence


def test_a_size_that_was_the_largest_asked_about_is_a_lower_bound():
    estimate = read(largest_batch_size=65_536, safe_batch_size=65_536, limits="max_batch_size")
    assert headline(estimate, SPEC.to_dict()) == "An A10 would train BERT base with at least 65,536."


def test_where_no_size_is_safe_it_is_said():
    estimate = read(largest_batch_size=1, safe_batch_size=0)
    assert headline(estimate, SPEC.to_dict()).endswith("up to about 1; no size is safe within the margin.")


def test_without_an_optimizer_nothing_is_trained():
    assert "run forward and backward" in headline(read(), {**SPEC.to_dict(), "optimizer": "none"})


def test_a_card_held_to_a_limit_is_shown_against_the_limit():
    estimate = read(spec={**SPEC.to_dict(), "memory_limit_bytes": 8 * GIB})
    assert "limited to 8 GiB" in headline(estimate, SPEC.to_dict())
    assert {bar.capacity_bytes for bar in estimate_bars(estimate, 16)} == {8 * GIB}


def test_no_card_that_takes_it_is_said():
    estimates = [read(largest_batch_size=0, safe_batch_size=0, limits="does_not_fit")]
    assert headline_of_all(estimates, SPEC.to_dict()).startswith("None of 1 cards would safely train")


def test_a_limit_that_made_cards_too_small_is_named_with_them():
    spec = SPEC.to_dict() | {"memory_limit_bytes": 2 * GIB}
    none = headline_of_all([read(safe_batch_size=3), read("t4", safe_batch_size=2)], spec)
    assert none == "None of 2 cards, each limited to 2 GiB, would safely train BERT base with your batch of 16."
    assert headline_of_all([read(), read("t4")], spec).startswith("All 2 cards, each limited to 2 GiB, would train")


def test_of_all_cards_the_smallest_that_takes_it_safely_is_named():
    estimates = [read("a100-40gb"), read("t4", safe_batch_size=15), read("a10")]
    said = headline_of_all(estimates, SPEC.to_dict())
    assert said == "2 of 3 cards would train BERT base with your batch of 16; the smallest is A10."


def test_cards_that_cannot_do_what_was_asked_count_among_all():
    assert headline_of_all([read(), read("t4")], SPEC.to_dict(), left_out=3).startswith("2 of 5 cards would train")


def test_the_card_that_takes_most_comes_first_and_one_that_takes_nothing_last():
    estimates = [read("t4", largest_batch_size=0), read("a10"), read("a100-40gb", largest_batch_size=200)]
    rows = gpu_rows(estimates, 16, {})
    assert [row.gpu_id for row in rows] == ["a100-40gb", "a10", "t4"]
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
    assert describe_error({}) == "not known for this model: measure it"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(0.008, "0.8 % over"), (-0.031, "3.1 % under"), (0.0001, "the same"), (0.0, "the same"), (None, "not comparable")],
)
def test_a_difference_is_said_with_its_direction(error, expected):
    assert describe_difference(error) == expected
