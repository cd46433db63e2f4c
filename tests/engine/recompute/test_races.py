"""A race of another machine: decided again from its rounds, and refused where it claims more."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from engine.documents.raced import Raced
from engine.errors import SpecError
from engine.kinds import RunKind, find_contradictions, kind_of
from engine.race.lines import TORCH
from engine.race.text import NO_GAIN
from engine.results.speed_rounds import SpeedClaim
from tests.engine.recompute.race_documents import RACES, document_of


@pytest.mark.parametrize("name", RACES)
def test_an_honest_race_has_no_contradiction(name: str) -> None:
    document = document_of(name)
    assert kind_of(document) is RunKind.RACE
    assert find_contradictions(document) == []


def _row(document: dict[str, Any], *entry: str) -> dict[str, Any]:
    return next(row for row in document["rows"] if row["entry"] == list(entry))


def _faster(document: dict[str, Any]) -> None:
    document["gain"] = {**document["gain"], "value": 3.0, "high": 3.2}


def _another_claim(document: dict[str, Any]) -> None:
    document["claim"] = "at_least"


def _another_leader(document: dict[str, Any]) -> None:
    document["at_today"]["leader"] = document["at_today"]["chosen"] = ["compile"]


def _more_saved(document: dict[str, Any]) -> None:
    document["savings"]["per_year_usd"] *= 10


def _a_faster_row(document: dict[str, Any]) -> None:
    _row(document, "compile")["speed"] = {"low": 2.0, "value": 2.1, "high": 2.2}


def _another_headline(document: dict[str, Any]) -> None:
    document["headline"] = "9.00x [8.90, 9.10] as fast with 1 line: AdamW, fused."


def _other_lines(document: dict[str, Any]) -> None:
    next(each for each in document["lines"] if each["library"] == TORCH)["lines"] = ["os.system('rm -rf /')"]


def _lower_difference(document: dict[str, Any]) -> None:
    _row(document, "bf16")["numbers"] = {"sameness": "same_to_the_bit", "largest_difference": 0.3, "tolerance": 0.02}


def _wider_tolerance(document: dict[str, Any]) -> None:
    _row(document, "bf16")["numbers"] |= {"tolerance": 0.9, "largest_difference": 0.3}


def _largest_of_nothing(document: dict[str, Any]) -> None:
    _row(document, "compile")["largest_batch_size"] = 500


def _more_than_the_device(document: dict[str, Any]) -> None:
    _row(document, "fused")["memory_bytes"] = 2**50


def _an_impossible_speed(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"][0]["samples_per_second"] = 1e15


def _rounds_of_no_time(document: dict[str, Any]) -> None:
    document["rounds"][0]["seconds"] = 0.01


def _more_time_than_the_run(document: dict[str, Any]) -> None:
    document["total_seconds"] = 3.0


def _quieter(document: dict[str, Any]) -> None:
    document["others_cores"] = 0.0


def _pays_sooner(document: dict[str, Any]) -> None:
    _row(document, "compile")["pays_after_steps"] = 3


FORGERIES: tuple[tuple[Callable[[dict[str, Any]], None], str, str], ...] = (
    (_faster, "changes that gain", "gain.value"),
    (_another_claim, "changes that gain", "claim"),
    (_another_leader, "changes that gain", "at_today.leader"),
    (_more_saved, "changes that gain", "savings.per_year_usd"),
    (_a_faster_row, "changes that gain", "rows"),
    (_another_headline, "changes that gain", "headline"),
    (_other_lines, "changes that gain", "lines"),
    (_lower_difference, "losses that differ", "rows"),
    (_wider_tolerance, "losses that differ", "rows"),
    (_largest_of_nothing, "changes that gain", "rows"),
    (_more_than_the_device, "changes that gain", "rows"),
    (_an_impossible_speed, "changes that gain", "rounds[0].timed[0].samples_per_second"),
    (_rounds_of_no_time, "changes that gain", "rounds[0].seconds"),
    (_more_time_than_the_run, "changes that gain", "total_seconds"),
    (_quieter, "other programs", "others_cores"),
    (_pays_sooner, "changes that gain", "rows"),
)


@pytest.mark.parametrize(("forge", "name", "field"), FORGERIES, ids=lambda part: getattr(part, "__name__", None))
def test_a_claim_beyond_the_rounds_is_found(forge: Callable[[dict[str, Any]], None], name: str, field: str) -> None:
    document = document_of(name)
    forge(document)
    assert any(each.field.startswith(field) for each in find_contradictions(document))


def test_that_nothing_gains_of_an_earlier_version_is_read_and_not_believed_where_the_rounds_do_not_show_it() -> None:
    document = document_of("other programs, and nothing that gains")
    document["claim"] = document["at_today"]["claim"] = SpeedClaim.NO_GAIN.value
    document["headline"] = NO_GAIN
    assert Raced.from_dict(document).headline == NO_GAIN
    assert {"claim", "at_today.claim", "headline"} <= {each.field for each in find_contradictions(document)}


def test_a_change_whose_losses_differ_cannot_be_recommended() -> None:
    document = document_of("changes that gain")
    for row in document["rows"]:
        if row["entry"]:
            row["numbers"] = {"sameness": "differs", "largest_difference": None, "tolerance": None}
    assert "chosen" in {each.field for each in find_contradictions(document)}


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
        find_contradictions(document)


def test_rounds_of_what_has_no_row_are_refused() -> None:
    document = document_of("changes that gain")
    document["rows"] = [row for row in document["rows"] if row["entry"] != ["fused"]]
    with pytest.raises(SpecError, match="no row"):
        find_contradictions(document)


def _as_slow_as_nothing(document: dict[str, Any]) -> None:
    for each in document["rounds"]:
        for timed in each["timed"]:
            timed["samples_per_second"] *= 1e-9 if not timed["entry"] else 1


def _a_reason_beside_the_recommendation(document: dict[str, Any]) -> None:
    _row(document, *document["chosen"])["reason"] = "its losses differ"


def _left_out_for_a_made_up_reason(document: dict[str, Any]) -> None:
    document["not_tried"] = [{"name": "zz", "label": "bf16", "reason": "it is 3.40x as fast"}]


def _a_difference_below_none(document: dict[str, Any]) -> None:
    _row(document, "fused")["numbers"] = {
        **_row(document, "fused")["numbers"],
        **{"sameness": "same_within_rounding", "largest_difference": -0.5},
    }


def _a_training_that_never_repeats(document: dict[str, Any]) -> None:
    document["own_difference"] = 1e6


def _compiled_by_nothing(document: dict[str, Any]) -> None:
    _row(document, "fused")["compile_seconds"] = 3.0


def _a_round_that_nothing_called_for(document: dict[str, Any]) -> None:
    document["rounds"].insert(0, {**document["rounds"][-1]})


def _a_round_without_today(document: dict[str, Any]) -> None:
    document["rounds"][0]["timed"] = [each for each in document["rounds"][0]["timed"] if each["entry"]]


def _combinations_that_did_not_grow(document: dict[str, Any]) -> None:
    later = next(each for each in document["rounds"] if each["generation"] == 1)
    for timed, name in zip(later["timed"], ("compile", "checkpointing"), strict=False):
        timed["entry"] = [name]


SHOWN_FORGERIES = (
    (_as_slow_as_nothing, "rounds[0].timed"),
    (_a_reason_beside_the_recommendation, "rows"),
    (_left_out_for_a_made_up_reason, "not_tried"),
    (_a_difference_below_none, "rows"),
    (_a_training_that_never_repeats, "rows"),
    (_compiled_by_nothing, "rows"),
    (_a_round_that_nothing_called_for, "rounds[0]"),
    (_a_round_without_today, "rounds[0]"),
    (_combinations_that_did_not_grow, "rounds["),
)


@pytest.mark.parametrize(("forge", "field"), SHOWN_FORGERIES, ids=lambda part: getattr(part, "__name__", None))
def test_what_a_page_shows_follows_from_the_race(forge: Callable[[dict[str, Any]], None], field: str) -> None:
    document = document_of("changes that gain")
    forge(document)
    assert any(each.field.startswith(field) for each in find_contradictions(document))


def test_a_batch_size_of_changes_that_have_no_row_is_refused() -> None:
    document = document_of("a batch size of its own")
    document["rows"] = [row for row in document["rows"] if not row["entry"]]
    document["rounds"] = []
    with pytest.raises(SpecError, match=r"sizes\[\d\]\.entry"):
        find_contradictions(document)
