"""A race of another machine: its answer is worked out from its rounds, and what cannot have raced is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from engine.answers import ImpossibleFiguresError
from engine.errors import SpecError
from engine.kinds import RunKind, answered, kind_of
from tests.engine.answers.answers import differing
from tests.engine.answers.race_documents import RACES, document_of


@pytest.mark.parametrize("name", RACES)
def test_an_honest_race_comes_out_as_it_was(name: str) -> None:
    document = document_of(name)
    assert kind_of(document) is RunKind.RACE
    assert differing(document) == []


def _row(document: dict[str, Any], *entry: str) -> dict[str, Any]:
    return next(row for row in document["rows"] if row["entry"] == list(entry))


def _more_than_the_device(document: dict[str, Any]) -> None:
    _row(document, "fused")["memory_bytes"] = 2**50


def _an_impossible_speed(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"][0]["samples_per_second"] = 1e15


def _as_slow_as_nothing(document: dict[str, Any]) -> None:
    for each in document["rounds"]:
        for timed in each["timed"]:
            timed["samples_per_second"] *= 1e-9 if not timed["entry"] else 1


def _rounds_of_no_time(document: dict[str, Any]) -> None:
    document["rounds"][0]["seconds"] = 0.01


def _more_time_than_the_run(document: dict[str, Any]) -> None:
    document["total_seconds"] = 3.0


def _a_difference_below_none(document: dict[str, Any]) -> None:
    _row(document, "fused")["numbers"] |= {"sameness": "same_within_rounding", "largest_difference": -0.5}


def _compiled_by_nothing(document: dict[str, Any]) -> None:
    _row(document, "fused")["compile_seconds"] = 3.0


IMPOSSIBLE: tuple[tuple[Callable[[dict[str, Any]], None], str], ...] = (
    (_more_than_the_device, "rows"),
    (_an_impossible_speed, "rounds[0].timed[0].samples_per_second"),
    (_as_slow_as_nothing, "rounds[0].timed"),
    (_rounds_of_no_time, "rounds[0].seconds"),
    (_more_time_than_the_run, "total_seconds"),
    (_a_difference_below_none, "rows"),
    (_compiled_by_nothing, "rows"),
)


@pytest.mark.parametrize(("forge", "field"), IMPOSSIBLE, ids=lambda part: getattr(part, "__name__", None))
def test_what_no_machine_can_have_measured_is_found(forge: Callable[[dict[str, Any]], None], field: str) -> None:
    document = document_of("changes that gain")
    forge(document)
    with pytest.raises(ImpossibleFiguresError) as error:
        answered(document)
    assert any(each.field.startswith(field) for each in error.value.found)


def test_a_change_whose_losses_differ_cannot_be_recommended() -> None:
    document = document_of("changes that gain")
    for row in document["rows"]:
        if row["entry"]:
            row["numbers"] = {"sameness": "differs", "largest_difference": None, "tolerance": None}
    with pytest.raises(ImpossibleFiguresError, match="chosen"):
        answered(document)


def test_a_reason_beside_what_raced_to_the_end_and_a_made_up_one_are_not_kept() -> None:
    document = document_of("changes that gain")
    forged = copy.deepcopy(document)
    _row(forged, *forged["chosen"])["reason"] = "its losses differ"
    forged["not_tried"] = [{"name": "zz", "label": "bf16", "reason": "it is 3.40x as fast"}]
    assert answered(forged) == answered(document)


@pytest.mark.parametrize("change", ["twice", "without today", "not grown"])
def test_rounds_that_no_rule_called_for_are_no_error_of_ours(change: str) -> None:
    document = document_of("changes that gain")
    rounds = document["rounds"]
    if change == "twice":
        rounds.insert(0, {**rounds[-1]})
    elif change == "without today":
        rounds[0]["timed"] = [each for each in rounds[0]["timed"] if each["entry"]]
    else:
        later = next(each for each in rounds if each["generation"] == 1)
        for timed, name in zip(later["timed"], ("compile", "checkpointing"), strict=False):
            timed["entry"] = [name]
    with suppress(SpecError, ImpossibleFiguresError, LookupError):  # all are a refusal at the portal's door
        assert answered(document)["headline"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("entry", ["unknown"]),
        ("entry", ["bf16", "fused"]),  # not in the order of the field
        ("entry", ["fused"]),  # another row has it
    ],
)
def test_changes_that_did_not_race_are_refused_by_name(member: str, value: list[str]) -> None:
    document = document_of("changes that gain")
    row = copy.deepcopy(_row(document, "compile"))
    document["rows"].append({**row, member: value})
    with pytest.raises(SpecError, match=r"rows\[\d+\]\.entry"):
        answered(document)


def test_rounds_of_what_has_no_row_are_refused() -> None:
    document = document_of("changes that gain")
    document["rows"] = [row for row in document["rows"] if row["entry"] != ["fused"]]
    with pytest.raises(SpecError, match="no row"):
        answered(document)


def test_a_batch_size_of_changes_that_have_no_row_is_refused() -> None:
    document = document_of("a batch size of its own")
    document["rows"] = [row for row in document["rows"] if not row["entry"]]
    document["rounds"] = []
    with pytest.raises(SpecError, match=r"sizes\[\d\]\.entry"):
        answered(document)
