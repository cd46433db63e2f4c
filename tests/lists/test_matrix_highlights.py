"""Which measured cards are called the fastest and the cheapest."""

from analysis.lists.matrix.table import cheapest, fastest


def test_a_card_alone_is_neither_the_fastest_nor_the_cheapest() -> None:
    assert fastest({"a": 10.0, "b": None}) == set()
    assert cheapest({"a": 10.0, "b": None}) == set()


def test_the_best_is_marked_and_what_is_within_the_noise_as_well() -> None:
    assert fastest({"a": 100.0, "b": 98.0, "c": 96.0}) == {"a", "b"}
    assert cheapest({"a": 1.0, "b": 1.02, "c": 1.1}) == {"a", "b"}


def test_a_free_card_is_the_cheapest() -> None:
    assert cheapest({"a": 0.0, "b": 0.1}) == {"a"}
