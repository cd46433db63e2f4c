"""Which columns there are, in what order they stand, and how one is moved."""

import pytest

from analysis.lists.runs.columns import COLUMNS, DEFAULT, columns_named, moved, sort_named


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
