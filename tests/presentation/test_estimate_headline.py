"""The answer of an estimate, its sentences and its rows: never more certain than the figures."""

from itertools import product
from typing import Any

import pytest

from analysis.presentation.estimate_error import describe_difference
from analysis.presentation.estimate_summary import (
    count_words,
    describe_price,
    describe_unused,
    estimate_bars,
    estimate_stack,
    figures,
    gpu_rows,
    headline,
    headline_of_all,
    how_rows,
    key_figures,
    kind_rows,
    with_article,
)
from analysis.presentation.labels import settings_in_full
from analysis.runs.gpu_catalog import Price
from engine.describe.estimate import describe_known_error
from engine.describe.result import WORDS_MOST
from engine.estimate.gpus import gpus
from engine.questions.documents.estimated import EstimatedCard
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from tests.fake_engine import estimate_of

SPEC = RunSpec(model="bert", current_batch_size=16).to_dict()
CAPPED = {"largest_batch_size": 65_536, "safe_batch_size": 65_536, "limits": "max_batch_size"}
NOTHING = {"largest_batch_size": 0, "safe_batch_size": 0, "limits": "does_not_fit"}
LIMIT = {"spec": {**SPEC, "memory_limit_bytes": 8 * GIB}}


def read(gpu: str = "a10", **changes: Any) -> EstimatedCard:
    return EstimatedCard.from_dict(estimate_of(RunSpec.from_dict(SPEC), gpus()[gpu]) | changes)


def priced(**prices: float) -> dict[str, Price]:
    return {gpu.replace("_", "-"): Price(price, "", "", False) for gpu, price in prices.items()}


@pytest.mark.parametrize(
    ("changes", "today", "sentence"),
    [
        ({}, 16, "Up to 89 fit an A10; batch size 16 leaves 82 % unused."),
        ({}, 50, "Up to 89 fit an A10; your 50 leaves at least 48 % unused."),
        ({"at": []}, 16, "Up to 89 fit an A10, against batch size 16."),
        ({}, 89, "Keep your 89: no more fits an A10 with the margin."),
        ({}, 95, "At most 89: your 95 leaves no margin on an A10."),
        ({}, 1_024, "Does not fit: 1,024 on an A10. Up to 89 fit."),
        ({"safe_batch_size": 0}, 1_024, "Does not fit: 1,024 on an A10. Only 99 might fit."),
        ({"safe_batch_size": 0, "largest_batch_size": 1}, 1, "Too close: 1 on an A10 fits only without the margin."),
        (NOTHING, 16, "Does not fit: not even batch 1 on an A10."),
        (CAPPED, 16, "65,536 or more fit an A10; batch size 16 leaves 82 % unused."),
        (LIMIT, 1_024, "Does not fit: 1,024 on an A10 limited to 8 GiB. Up to 89 fit."),
    ],
)
def test_the_answer_comes_first_and_names_todays_size(changes, today, sentence):
    assert headline(read(**changes), SPEC, today) == sentence


@pytest.mark.parametrize("changes", [{}, CAPPED, NOTHING, {"safe_batch_size": 0}, {"at": []}])
@pytest.mark.parametrize("limited", [{}, LIMIT])
def test_no_sentence_is_longer_than_a_reader_takes_in_at_once(changes, limited):
    for gpu, today in product(gpus(), (1, 16, 50, 89, 95, 1_024, 131_072)):
        sentence = headline(read(gpu, **changes, **limited), SPEC, today)
        assert count_words(sentence) <= WORDS_MOST, sentence


def test_a_number_and_its_unit_are_one_word():
    assert count_words("Up to 89 fit a V100 SXM2 16 GB; batch size 16 leaves 82 % unused.") == 14


def test_of_unused_memory_no_more_is_claimed_than_there_is():
    point = read().at_batch_size(16)
    full = read(at=[{**estimate_of(RunSpec.from_dict(SPEC), gpus()["a10"])["at"][0]}])
    assert point is not None
    assert describe_unused(full, 16) == "leaves 82 % unused"
    assert describe_unused(read(at=[]), 16) == ""


def test_of_all_gpus_the_cheapest_that_takes_it_is_named_with_its_price():
    estimates = [read("a100-40gb"), read("t4", safe_batch_size=15), read("a10")]
    prices = priced(a100_40gb=1.29, t4=0.2, a10=0.6)
    said = headline_of_all(estimates, SPEC, prices=prices)
    assert said == "2 of 3 GPUs fit batch size 16; the cheapest is an A10, $0.60 an hour."


def test_without_a_known_price_the_smallest_is_named():
    said = headline_of_all([read("a100-40gb"), read("t4", safe_batch_size=15), read("a10")], SPEC, left_out=3)
    assert said == "2 of 6 GPUs fit batch size 16; the smallest is an A10."


def test_a_limit_that_makes_gpus_too_small_is_named_with_them():
    spec = SPEC | {"memory_limit_bytes": 2 * GIB}
    none = headline_of_all([read(safe_batch_size=3), read("t4", safe_batch_size=2)], spec)
    assert none == "Does not fit: none of 2 GPUs limited to 2 GiB takes batch size 16."
    assert headline_of_all([read(), read("t4")], spec).startswith("All 2 GPUs limited to 2 GiB fit batch size 16")


def test_the_sentence_of_all_gpus_is_short_whichever_is_named():
    for gpu, spec in product(gpus(), (SPEC, SPEC | {"memory_limit_bytes": 2 * GIB})):
        for prices in ({}, {gpu: Price(1234.5, "", "", False)}):
            said = headline_of_all([read(gpu), read("t4", safe_batch_size=1)], spec, 32, prices)
            assert count_words(said) <= WORDS_MOST, said


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("A100 40GB", "an A100 40GB"),
        ("H100", "an H100"),
        ("L4", "an L4"),
        ("T4", "a T4"),
        ("GH200", "a GH200"),
        ("Tesla T4", "a Tesla T4"),
    ],
)
def test_the_article_is_the_one_that_is_spoken(name, sentence):
    assert with_article(name) == sentence


def test_of_several_gpus_the_answer_is_that_of_each_and_the_price_that_of_all():
    spec = {**SPEC, "ranks": 8, "strategy": "fsdp", "current_batch_size": 50}
    estimate = read(spec=spec)
    said = headline(estimate, spec)
    assert said == "Up to 89 fit each of 8 A10; your 50 leaves at least 48 % unused."
    assert count_words(said) <= WORDS_MOST
    cheapest = headline_of_all([estimate], spec, 33, priced(a10=1.0))
    assert cheapest == "1 of 34 GPUs fits your 50; the cheapest is 8 A10, $8.00 an hour."


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
    estimate = read(spec={**SPEC, "memory_limit_bytes": 8 * GIB})
    assert {bar.capacity_bytes for bar in estimate_bars(estimate, 16)} == {8 * GIB}


def test_the_card_that_takes_most_comes_first_and_one_that_takes_nothing_last():
    estimates = [
        read("t4", largest_batch_size=0),
        read("a10"),
        read("a100-40gb", largest_batch_size=200),
    ]
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
    assert "buffers" not in [name for name, _ in kind_rows(read())]


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
    rows = gpu_rows(
        [read("t4", safe_batch_size=15), read("a10"), read("a100-40gb"), read("l4")],
        16,
        prices,
    )
    assert [row.estimate.gpu.id for row in rows if row.is_cheapest] == ["a10"]


def test_half_precision_says_what_the_weights_are():
    assert settings_in_full(["bf16", "AdamW"], {"precision": "bf16"}) == ["bf16 autocast, fp32 weights", "AdamW"]
