"""Addresses of comparisons and trends: what they mean, and what is refused by name."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from analysis.pages.compare.query import BadQuery, CompareQuery, TrendQuery
from tests.factories import make_spec


def refusal(kind: type[CompareQuery] | type[TrendQuery], query: str) -> BadQuery:
    with pytest.raises(BadQuery) as error:
        kind.of(QueryDict(query))
    return error.value


def test_an_address_names_runs_baseline_and_axes() -> None:
    query = CompareQuery.of(QueryDict("ids=3,8,9&baseline=8&x=linear&y=log"))
    assert query == CompareQuery((3, 8, 9), 8, "linear", "log")


def test_runs_may_be_named_one_by_one_and_twice() -> None:
    assert CompareQuery.of(QueryDict("ids=3&ids= 8 ,3")).ids == (3, 8)


def test_a_view_has_one_address() -> None:
    query = CompareQuery((3, 8), 8, "log", "log")
    assert query.address(y="linear") == "?ids=3,8&baseline=8&x=log&y=linear"
    assert CompareQuery.of(QueryDict(query.address()[1:])) == query


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "ids"),
        ("ids=3", "ids"),
        ("ids=3,3", "ids"),
        ("ids=3,x", "ids"),
        ("ids=3,0", "ids"),
        ("ids=3,-4", "ids"),
        ("ids=3,99999999999999999999", "ids"),
        ("ids=3,9223372036854775808", "ids"),
        ("ids=" + ",".join(map(str, range(1, 52))), "ids"),
        ("ids=3,8&baseline=9", "baseline"),
        ("ids=3,8&baseline=x", "baseline"),
        ("ids=3,8&x=square", "x"),
        ("ids=3,8&y=LOG", "y"),
        ("ids=3,8&basline=3", "basline"),
    ],
)
def test_a_wrong_comparison_is_refused_by_its_parameters_name(query: str, parameter: str) -> None:
    assert refusal(CompareQuery, query).parameter == parameter


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("model=bert", "gpu"),
        ("gpu=A100", "model"),
        ("model=bert&gpu=A100&precision=fp64", "precision"),
        ("model=bert&gpu=A100&gradient_checkpointing=yes", "gradient_checkpointing"),
        ("model=bert&gpu=A100&input_size=0", "input_size"),
        ("model=bert&gpu=A100&colour=red", "colour"),
    ],
)
def test_a_wrong_trend_is_refused_by_its_parameters_name(query: str, parameter: str) -> None:
    assert refusal(TrendQuery, query).parameter == parameter


def test_the_address_of_a_runs_trend_leads_back_to_its_series() -> None:
    spec = make_spec(precision="bf16", gradient_checkpointing=True, sequence_length=64, memory_limit_bytes=2**30)
    series = TrendQuery.of_run(spec.to_dict(), "NVIDIA A100")
    assert TrendQuery.of(QueryDict(series.address[1:])) == series
    assert (series.gradient_checkpointing, series.input_size, series.memory_limit_bytes) == (True, 64, 2**30)


def test_a_default_and_the_same_value_said_are_one_series() -> None:
    said, silent = (make_spec(sequence_length=size).to_dict() for size in (128, None))
    assert TrendQuery.of_run(said, "A100") == TrendQuery.of_run(silent, "A100")


def test_a_model_that_is_no_longer_offered_still_has_a_trend() -> None:
    series = TrendQuery.of_run({"model": "gone", "precision": "fp32", "optimizer": "adamw"}, "A100")
    assert series.address == "?model=gone&gpu=A100"
