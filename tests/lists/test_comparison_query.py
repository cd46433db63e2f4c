"""Addresses of comparisons: what they mean, and what is refused by name."""

import pytest
from django.http import QueryDict

from analysis.http.query_string import BadQuery, QueryProblem
from analysis.lists.comparison.query import CompareQuery


def refusal(query: str) -> QueryProblem:
    with pytest.raises(BadQuery) as error:
        CompareQuery.of(QueryDict(query))
    [problem] = error.value.problems
    return problem


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
        ("ids=3,x", "ids"),
        ("ids=3,0", "ids"),
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
    assert refusal(query).parameter == parameter
