"""A sentence that a document may hold is written in one place: whatever writes one writes it from there.

Who adds a reason or a note adds its wording: otherwise a portal refuses the documents that hold it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine.results.result import Outcome, Probe
from engine.search.allowed_sizes import AllowedSizes, Rule
from engine.text.wording import Wording, is_one_of
from engine.tune import notes
from engine.tune.learned_sizes import describe_learned
from engine.tune.reading import TOTAL
from engine.tune.wanted_size import Unit, unit_given
from engine.tune.whole_run import describe_peak, describe_whole_run
from tests.engine.tune.test_whole_run import LOOKED, SEEN

ROOT = Path(engine.__file__).parent
WRITERS = [path for path in ROOT.rglob("*.py") if "recompute" not in path.parts]


def in_calls(*names: str, keyword: str | None = None, place: int = 0) -> Iterator[tuple[str, ast.expr]]:
    """Yield what calls of these functions are given, by keyword or at a place, and where."""
    for path in WRITERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in names:
                continue
            by_name = [each.value for each in node.keywords if each.arg == keyword]
            for given in by_name or (node.args[place : place + 1] if keyword is None else []):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", given


def test_every_note_of_a_training_is_written_by_a_function_of_this_test() -> None:
    """The notes of `engine/search` are decided again from the probes."""
    given = {ast.unparse(each) for where, each in in_calls("with_note", place=1) if not where.startswith("search/")}
    said = re.search(r"said = \((.*)\)\n", (ROOT / "tune" / "run.py").read_text())
    assert said is not None
    assert given | {*said[1].split(", ")} == {
        "whole_run",
        "of_largest.caveat",
        "of_largest.left_out",
        "late",
        "in_evaluation",
        "self.unit.describe()",
        "describe_learned(rule, self.searched)",
    }, "write it from engine/tune/notes.py, and try it here"


def test_every_wording_of_a_note_is_one_that_a_document_may_hold() -> None:
    written = {each for each in vars(notes).values() if isinstance(each, Wording)}
    assert written == {each for each in notes.NOTES if isinstance(each, Wording)} | {notes.PEAK, notes.LEARNED_SIZES}
    assert not any(
        "; " in (each if isinstance(each, str) else each.template)
        for each in (*notes.NOTES, notes.PEAK, notes.LEARNED_SIZES)
    )


SAID = [
    notes.describe_lengths([8, 4096], False, notes.LONGEST),
    notes.describe_lengths([8, 12_000], True, ""),
    notes.describe_dimensions({2: (8, 9), 3: (24, 56), 4: (24, 56)}, notes.FIXED),
    notes.describe_varied([900, 3 * 2**30]),
    notes.REFUSED_LATE.write(count=31, step_count=194),
    notes.STILL_ROSE.write(count=40),
    notes.REFUSED_IN_EVALUATION.write(count=41, largest_count=40),
]
CAVEATS = [([], 0, 0, 0), (SAID[:2], 3 * 2**20, 5, 2, 1), (SAID[2:], 900, 2**40, 1, 3)]


@pytest.mark.parametrize("seen", CAVEATS)
def test_every_caveat_is_of_its_wordings(seen: tuple[list[str], int, int, int]) -> None:
    caveat = notes.caveat_of(*seen)
    assert [part for part in (caveat or "").split("; ") if part and not is_one_of(part, notes.NOTES)] == []


@pytest.mark.parametrize("unit", [Unit(1, 0, (TOTAL,)), Unit(24, 1_200, (0,)), unit_given("tokens")])
def test_what_is_said_of_a_sample_is_of_its_wordings(unit: Unit) -> None:
    assert is_one_of(unit.describe() or "", notes.NOTES)


def test_what_was_taken_for_data_is_told_from_two_of_a_hundred_parts_of_the_peak_on() -> None:
    assert notes.left_out(2 * 2**20, 100 * 2**20) is None
    assert is_one_of(notes.left_out(3 * 2**20, 100 * 2**20) or "", notes.NOTES)


@pytest.mark.parametrize("name", ["ValueError", None, "", "use 4,096", "x" * 41, "É"])
@pytest.mark.parametrize("rule", [AllowedSizes(Rule.MULTIPLE, 1_024), AllowedSizes(Rule.POWER_OF_TWO)])
def test_what_is_said_of_the_sizes_that_a_script_takes_is_of_its_wording(rule: AllowedSizes, name: str | None) -> None:
    failed = [Probe(size, Outcome.ERROR, error_type=error) for size, error in ((7, name), (12_000, "KeyError"))]
    said = notes.LEARNED_SIZES.read(describe_learned(rule, failed))
    assert said is not None
    assert (said["rule"], said["failed_sizes"]) == (rule.describe(), "7 and 12000")
    assert "use" not in said["errors"]


DATA = [
    *({}, {"looked": 900}, {"smallest": 512}, {"is_text": True}, {"collated": 900}, {"collated": 5_000}),
    *({"leading_given": 2}, {"is_trained": False}, {"problem": "KeyError: 50x as fast"}, {"problem": "what?"}),
    *({"problem": text} for text in notes.PROBLEMS),
    {"problem": f"{notes.NO_LARGEST_BATCH}: RuntimeError: stack\nexpects each tensor"},
]
PARTS = [
    {"data": []},
    {"data": [LOOKED] * 6, "optimizers": 2, "evaluation_batches": 4, "is_evaluation_cut": True},
    *({"is_to_its_end": True, "passes": each} for each in (0, 12)),
    {"is_shortened": False},
    {"data": [LOOKED], "checkpoints": 2, "short_batch": 7, "evaluation_batches": 12_000},
    *({"data": [LOOKED | each]} for each in DATA),
]


@pytest.mark.parametrize("changes", PARTS)
def test_whatever_a_whole_run_says_is_of_its_wordings(changes: dict[str, object]) -> None:
    text = describe_whole_run(SEEN | changes)
    parts = text.removeprefix(notes.WHOLE_RUN).split("; ")
    assert [part for part in parts if not is_one_of(part, notes.OF_WHOLE_RUN)] == []
    assert "50x" not in text


@pytest.mark.parametrize("phase", [None, "forward", "backward", "optimizer_step", "evaluation", "checkpoint"])
@pytest.mark.parametrize("shape", [(), (4_096,), (40, 512)])
@pytest.mark.parametrize("held", [0, 1, 1_023, 2**20, 3 * 2**30, 2**50])
def test_whatever_is_said_of_a_peak_is_of_its_wording(phase: str | None, shape: tuple[int, ...], held: int) -> None:
    assert notes.PEAK.read(describe_peak(phase, shape, held)) is not None


def test_every_problem_that_the_hook_names_has_its_words() -> None:
    texts = {
        value.value
        for path in (ROOT / "tune" / "hook").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "problem" and isinstance(value, ast.Constant)
    }
    assert texts == {*notes.PROBLEMS}
    assert notes.NO_LARGEST_BATCH in (ROOT / "tune" / "hook" / "memorymark_epoch.py").read_text()
