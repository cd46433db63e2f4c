"""A query string is read strictly: what is not understood is refused, by its parameter's name."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django import forms
from django.http import QueryDict

from analysis.http.query_string import (
    LARGEST_ID,
    BadQuery,
    FlagField,
    MomentField,
    StrictQueryForm,
    WholeNumberField,
    without_empty,
)


class Example(StrictQueryForm):
    """One field of each kind."""

    repeatable = ("states",)

    states = forms.MultipleChoiceField(choices=[("new", "New"), ("old", "Old")], required=False)
    colour = forms.ChoiceField(choices=[("red", "Red"), ("blue", "Blue")], initial="blue", required=False)
    row = WholeNumberField(required=False)
    limit = WholeNumberField(required=False, min_value=0, max_value=50, initial=10)
    flag = FlagField(required=False, initial=False)
    since = MomentField(required=False)
    name = forms.CharField()


def read(query: str) -> dict[str, Any]:
    return dict(Example.read(QueryDict(query)).cleaned_data)


def refused(query: str) -> list[tuple[str, str]]:
    with pytest.raises(BadQuery) as caught:
        read(query)
    return [(problem.parameter, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("query", "parameter", "message"),
    [
        (
            "name=a&color=red",
            "color",
            "there is no such parameter here; known parameters: states, colour, row, limit, ",
        ),
        ("name=a&colour=red&colour=red", "colour", "given 2 times; it takes one value"),
        ("name=a&colour=", "colour", "is empty; give a value, or leave it out"),
        ("name=a%00b", "name", "must not contain a NUL character"),
        ("name=a&states=%00", "states", "must not contain a NUL character"),
        ("row=7", "name", "is needed"),
        ("name=%20", "name", "is needed"),
        ("name=a&colour=green", "colour", "must be one of red, blue"),
        ("name=a&states=new&states=odd", "states", "must be one of new, old"),
        ("name=a&flag=perhaps", "flag", "must be true or false"),
        ("name=a&since=yesterday", "since", "must be a moment or a day such as"),
        ("name=a&since=0001-01-01T00:00:00%2B14:00", "since", "must be a moment or a day such as"),
        *(
            (f"name=a&row={number}", "row", f"must be a whole number from 1 to {LARGEST_ID:,}")
            for number in ("0", "-1", "1.0", "1e3", "%20", "²", "٣", "+1", "1_0", str(LARGEST_ID + 1), "9" * 5_000)
        ),
        ("name=a&limit=51", "limit", "must be a whole number from 0 to 50"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(query: str, parameter: str, message: str) -> None:
    [(named, said)] = refused(query)
    assert named == parameter
    assert said.startswith(message)


def test_all_that_is_wrong_is_named_at_once() -> None:
    assert [parameter for parameter, _ in refused("colour=green&row=x&nonsense=1")] == [
        *("nonsense", "colour", "row", "name"),
    ]


def test_parameters_that_are_left_out_have_their_defaults() -> None:
    assert read("name=a") == {
        **{"states": [], "colour": "blue", "row": None, "limit": 10, "flag": False, "since": None, "name": "a"},
    }


def test_given_parameters_are_read_as_their_types() -> None:
    found = read(f"name=a&states=new&states=old&row={LARGEST_ID}&limit=0&since=2026-11-22T08:00:00%2B01:00")
    assert (found["states"], found["row"], found["limit"]) == (["new", "old"], LARGEST_ID, 0)
    assert found["since"] == datetime(2026, 11, 22, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("word", "value"), [("1", True), ("true", True), ("True", True), ("0", False), ("false", False)]
)
def test_a_flag_is_read_and_shown_as_what_it_says(word: str, value: bool) -> None:
    form = Example.read(QueryDict(f"name=a&flag={word}"))
    assert form.cleaned_data["flag"] is value
    assert ("checked" in str(form["flag"])) is value


def test_a_form_without_parameters_takes_none() -> None:
    [problem] = StrictQueryForm(QueryDict("page=2")).problems
    assert (problem.message, problem.code) == ("there is no such parameter here; it has no parameters", "unknown")


def test_what_a_form_on_a_page_leaves_empty_is_dropped() -> None:
    assert without_empty(QueryDict("q=&state=a&state=&kind=b")).urlencode() == "state=a&kind=b"
