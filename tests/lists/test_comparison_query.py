"""Addresses of comparisons, trends and columns: what they mean, and what is refused by name."""

import pytest
from django.http import QueryDict

from analysis.http.query_string import BadQuery, QueryProblem
from analysis.lists.comparison.query import CompareQuery
from analysis.lists.runs.columns import COLUMNS, DEFAULT, columns_named, moved, sort_named
from analysis.lists.trend.query import TrendForm
from analysis.runs.columns.series import SeriesKey
from engine.trainings.script.ranked_spec import requested_spec
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_spec


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


def refusal_of_trend(query: str) -> QueryProblem:
    with pytest.raises(BadQuery) as error:
        TrendForm.read(QueryDict(query))
    [problem] = error.value.problems
    return problem


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("model=bert", "gpu"),
        ("gpu=A100", "model"),
        ("model=bert&gpu=A100&precision=fp64", "precision"),
        ("model=bert&gpu=A100&gradient_checkpointing=yes", "gradient_checkpointing"),
        ("model=bert&gpu=A100&input_size=0", "input_size"),
        ("model=bert&gpu=A100&colour=red", "colour"),
        ("model=bert&gpu=A100&sequence_length=64&input_size=64", "input_size"),
        ("model=tagger&gpu=A100&own_script=1&precision=bf16", "precision"),
        ("model=tagger&gpu=A100&own_script=1&sequence_length=64", "sequence_length"),
    ],
)
def test_a_wrong_trend_is_refused_by_its_parameters_name(query: str, parameter: str) -> None:
    assert refusal_of_trend(query).parameter == parameter


def test_the_address_of_a_runs_trend_leads_back_to_its_series() -> None:
    spec = make_spec(precision="bf16", gradient_checkpointing=True, sequence_length=64, memory_limit_bytes=2**30)
    series = SeriesKey.of_run(spec.to_dict(), "NVIDIA A100")
    assert TrendForm.read(QueryDict(series.address[1:])).series == series
    assert (series.parameters["gradient_checkpointing"], series.input_size, series.memory_limit_bytes) == (
        True,
        64,
        2**30,
    )


def test_a_default_and_the_same_value_said_are_one_series() -> None:
    said, silent = (make_spec(sequence_length=size).to_dict() for size in (128, None))
    assert SeriesKey.of_run(said, "A100") == SeriesKey.of_run(silent, "A100")


def test_a_model_that_is_no_longer_offered_still_has_a_trend() -> None:
    series = SeriesKey.of_run({"model": "gone", "precision": "fp32", "optimizer": "adamw"}, "A100")
    assert series.address == "?model=gone&gpu=A100"


@pytest.mark.parametrize("query", ["model=bert&gpu=A100&sequence_length=64", "model=bert&gpu=A100&input_size=64"])
def test_the_input_size_has_the_name_that_it_has_everywhere_and_its_former_one(query: str) -> None:
    series = TrendForm.read(QueryDict(query)).series
    assert (series.input_size, series.address) == (64, "?model=bert&gpu=A100&sequence_length=64")


def test_ranks_have_a_series_of_their_own_and_emulated_ones_another() -> None:
    requested = {"model": "bert", "ranks": 8, "strategy": "fsdp", "precision": "bf16"}
    made = [{"model": "bert"}, requested, {**requested, "emulate_ranks": 8}]
    series = [SeriesKey.of_run(requested_spec(each).to_dict(), "A100") for each in made]
    assert len({*series}) == 3
    assert [each.model_of_runs for each in series] == ["bert", *["bert, fsdp on 8 ranks"] * 2]
    assert [TrendForm.read(QueryDict(each.address[1:])).series for each in series] == series


def test_the_address_of_an_own_scripts_trend_leads_back_to_it() -> None:
    spec = TuneSpec(("train", "{batch_size}"), name="bert", memory_limit_bytes=2**31).to_dict()
    series = SeriesKey.of_run(spec, "A100")
    assert TrendForm.read(QueryDict(series.address[1:])).series == series
    assert series != SeriesKey.of_run(make_spec(model="bert", memory_limit_bytes=2**31).to_dict(), "A100")


def test_the_run_always_comes_first():
    assert [column.key for column in columns_named(["state", "run", "gpu"])] == ["run", "state", "gpu"]


@pytest.mark.parametrize(("keys", "said"), [(["colour"], "no column “colour”"), (["gpu", "gpu"], "named twice")])
def test_a_column_that_is_none_or_stands_twice_is_refused(keys, said):
    with pytest.raises(ValueError, match=said):
        columns_named(keys)


def test_the_default_columns_are_columns():
    assert [column.key for column in columns_named(DEFAULT)] == list(DEFAULT)


@pytest.mark.parametrize(
    ("key", "by", "then"),
    [
        ("a", +1, ("run", "b", "a", "c")),
        ("a", -1, ("run", "a", "b", "c")),
        ("c", -1, ("run", "a", "c", "b")),
        ("c", +1, ("run", "a", "b", "c")),
    ],
)
def test_a_column_moves_a_place_and_stays_behind_the_run(key, by, then):
    assert moved(("run", "a", "b", "c"), key, by) == then


def test_every_order_ends_in_the_number_of_the_run():
    for column in COLUMNS.values():
        if column.order:
            assert column.order[-1].removeprefix("-") == "id"


def test_the_other_direction_is_the_exact_reverse():
    assert sort_named("model").keys == ("model", "-created_at", "-id")
    assert sort_named("-model").keys == ("-model", "created_at", "id")


@pytest.mark.parametrize("text", ["", "-", "colour", "tags", "--largest"])
def test_an_order_that_is_none_is_refused_with_those_there_are(text):
    with pytest.raises(ValueError, match="largest"):
        sort_named(text)
