"""The answer of an estimate in one sentence: at most 17 words, never more certain than the figures."""

from itertools import product
from typing import Any

import pytest

from analysis.presentation.estimate_summary import (
    WORDS_MOST,
    count_words,
    describe_unused,
    headline,
    headline_of_all,
    with_article,
)
from analysis.runs.gpu_catalog import Price
from engine.documents.estimated import EstimatedCard
from engine.estimate.gpus import gpus
from engine.spec import RunSpec
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
        ({}, 16, "Up to 89 fit an A10; the default 16 leaves 82 % unused."),
        ({}, 50, "Up to 89 fit an A10; your 50 leaves at least 48 % unused."),
        ({"at": []}, 16, "Up to 89 fit an A10, against the default 16."),
        ({}, 89, "Keep your 89: no more fits an A10 with the margin."),
        ({}, 95, "At most 89: your 95 leaves no margin on an A10."),
        ({}, 1_024, "Does not fit: 1,024 on an A10. Up to 89 fit."),
        ({"safe_batch_size": 0}, 1_024, "Does not fit: 1,024 on an A10. Only 99 might fit."),
        ({"safe_batch_size": 0, "largest_batch_size": 1}, 1, "Too close: 1 on an A10 fits only without the margin."),
        (NOTHING, 16, "Does not fit: not even batch 1 on an A10."),
        (CAPPED, 16, "65,536 or more fit an A10; the default 16 leaves 82 % unused."),
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
    assert count_words("Up to 89 fit a V100 SXM2 16 GB; the default 16 leaves 82 % unused.") == 14


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
    assert said == "2 of 3 GPUs fit the default 16; the cheapest is an A10, $0.60 an hour."


def test_without_a_known_price_the_smallest_is_named():
    said = headline_of_all([read("a100-40gb"), read("t4", safe_batch_size=15), read("a10")], SPEC, left_out=3)
    assert said == "2 of 6 GPUs fit the default 16; the smallest is an A10."


def test_a_limit_that_makes_gpus_too_small_is_named_with_them():
    spec = SPEC | {"memory_limit_bytes": 2 * GIB}
    none = headline_of_all([read(safe_batch_size=3), read("t4", safe_batch_size=2)], spec)
    assert none == "Does not fit: none of 2 GPUs limited to 2 GiB takes the default 16."
    assert headline_of_all([read(), read("t4")], spec).startswith("All 2 GPUs limited to 2 GiB fit the default 16")


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
        ("RTX 4090", "an RTX 4090"),
        ("L4", "an L4"),
        ("T4", "a T4"),
        ("V100", "a V100"),
        ("GH200", "a GH200"),
        ("Tesla T4", "a Tesla T4"),
        ("AMD Instinct MI300X", "an AMD Instinct MI300X"),
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
