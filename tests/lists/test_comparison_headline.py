"""The comparison in one sentence: only what is sure is said."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import pytest

from analysis.lists.comparison.headline import compare_headline
from analysis.lists.comparison.metrics import metric_rows
from engine.describe.answer import WORDS_MOST
from engine.results.result import RunResult
from tests.factories import make_spec
from tests.factories.results import result, subject
from tests.factories.speeds import make_unmeasurable_result


def headline(*results: RunResult, models: Sequence[str] = ()) -> str:
    named = zip_longest(results, models, fillvalue="bert-tiny")
    subjects = [subject(number, one, model=model) for number, (one, model) in enumerate(named, start=1)]
    said = compare_headline(subjects, subjects[0], metric_rows(subjects, subjects[0]))
    assert len(said.split()) <= WORDS_MOST
    return said


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ((result(8), result(12)), "Run 2 is 1.04x as fast as run 1; run 2 fits the most, 12 against 8."),
        ((result(8, speed=100.0), result(8, speed=300.0)), "Run 2 is 3.00x as fast as run 1; both fit 8."),
        ((result(12, speed=300.0), result(8, speed=100.0)), "Run 1 is the fastest; run 1 fits the most, 12."),
        ((result(8, speed=100.0), result(8, speed=101.0), result(8, speed=100.0)), "All fit 8."),
        ((make_unmeasurable_result(), make_unmeasurable_result()), "Both fit 8."),
    ],
)
def test_a_comparison_is_told_in_one_sentence(results: tuple[RunResult, ...], said: str) -> None:
    assert headline(*results) == said


def test_runs_that_differ_in_one_setting_are_called_by_it() -> None:
    answers = [replace(result(size), spec=make_spec(optimizer=name)) for size, name in ((8, "adamw"), (12, "sgd"))]
    assert headline(*answers) == "SGD is 1.04x as fast as AdamW; SGD fits 12, AdamW 8."
    both = replace(result(12), spec=make_spec(precision="bf16", optimizer="sgd"))
    assert headline(replace(result(8), spec=make_spec()), both).startswith("Run 2 is")


def test_of_different_models_it_says_only_how_many() -> None:
    assert headline(result(8), result(12), models=("bert", "gpt2")) == "2 runs"
