"""A whole run trains the largest rows of the data and lets the script evaluate and save."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.trainings.script.hook import memorymark_rows
from engine.trainings.script.hook.memorymark_rows import elements, largest_rows
from engine.trainings.script.notes.memory import Memory, kept_each, longest_evaluation
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.notes.whole_run import (
    NO_LARGEST_BATCH,
    PROBLEMS,
    Unseen,
    describe_peak,
    describe_whole_run,
)
from engine.trainings.script.start.launch import Watching
from tests.engine.questions.answers.answers import differing
from tests.engine.trainings.script.starts import started

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "benchmarks" / "tune_scripts" / "whole_epoch.py"
SEEN = {"data": [], "evaluation_batches": 0, "is_evaluation_cut": False, "checkpoints": 0, "short_batch": None}
SEEN |= {"optimizers": 1, "least_steps": 5, "passes": 2, "is_to_its_end": False}
SEEN |= {"is_shortened": True, "pass_batches": 600, "seconds": 10.0}
LOOKED = {"count": 5_000, "looked": 5_000, "seconds": 0.1, "largest": 512, "smallest": 8, "is_trained": True}
LOOKED |= {"is_text": False, "leading": 3, "leading_given": 3}


class Rows:
    """A data set of texts, that says which of them were read."""

    def __init__(self, lengths: list[int], *, fails: bool = False) -> None:
        self.lengths, self.fails, self.read = lengths, fails, 0

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[str, int]:
        if self.fails:
            raise KeyError(row)
        self.read += 1
        return "x" * self.lengths[row], 1


@pytest.mark.parametrize(
    ("row", "sizes"),
    [
        ({"input_ids": [1, 2, 3], "labels": 1}, [3]),
        (("a text", 4), [6]),
        ([[0.5, 0.25], "ab"], [2, 2]),
        (None, []),
    ],
)
def test_each_part_of_a_row_has_its_number_of_elements(row: object, sizes: list[int]) -> None:
    assert elements(row) == sizes


def look(rows: Rows, tmp_path: Path, seconds: float = 20.0) -> dict:
    import torch

    return largest_rows(torch, rows, str(tmp_path / "rows.json"), seconds)


def test_the_largest_rows_come_first_and_later_starts_are_given_the_same(tmp_path: Path) -> None:
    found = look(Rows([3, 9, 4, 9, 1]), tmp_path)
    assert found["rows"] == [1, 3, 2, 0, 4]
    assert (found["looked"], found["largest"], found["smallest"]) == (5, 9, 1)
    later = look(Rows([3, 9, 4, 9, 1]), tmp_path)
    assert (later["rows"], later["seconds"]) == (found["rows"], found["seconds"])


def test_a_data_set_that_takes_too_long_is_sampled_over_its_whole_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows([1] * 20_000 + [7] * 20_000)
    clock = SimpleNamespace(monotonic=lambda: rows.read / 1_000)  # each row takes a millisecond
    monkeypatch.setattr(memorymark_rows, "time", clock)
    found = look(rows, tmp_path, seconds=4.0)
    assert 4_000 < found["looked"] < 6_000
    assert found["largest"] == 7


def test_a_data_set_that_cannot_be_read_is_a_problem_that_is_said(tmp_path: Path) -> None:
    found = look(Rows([1, 2], fails=True), tmp_path)
    assert (found["rows"], found["problem"]) == ([], "KeyError: 0")


def test_what_was_not_seen_is_said() -> None:
    text = describe_whole_run(SEEN)
    assert "came from no DataLoader, so it was not looked through" in text
    assert "those of the 5 steps that were watched" in text
    assert "no evaluation was seen" in text
    assert "no checkpoint was saved" in text


def test_a_sampled_data_set_and_one_of_equal_rows_are_told_from_one_looked_through() -> None:
    def said(**changes: object) -> str:
        return describe_whole_run(SEEN | {"data": [LOOKED | changes], "evaluation_batches": 4, "checkpoints": 1})

    assert "all 5,000 rows looked through have 8 to 512 elements" in said()
    assert "900 of 5,000 rows looked through" in said(looked=900)
    assert "the same size" in said(smallest=512)
    assert "was not looked through (its rows come" in said(problem="its rows come one after the other")


def said_of(**changes: object) -> str:
    return describe_whole_run(SEEN | {"data": [LOOKED | changes]})


def test_how_far_into_the_script_it_went_is_said_and_what_a_script_that_cannot_be_shortened_would_take() -> None:
    assert "2 passes of training ran: what the script changes later was not reached" in said_of()
    assert "ran to its own end, 2 passes of training" in describe_whole_run(SEEN | {"is_to_its_end": True})
    assert "no pass was shortened: one of 600 batches takes about 20 min, and 5 steps" in describe_whole_run(
        SEEN | {"is_shortened": False}
    )


def test_a_plain_start_says_what_it_cannot_have_met() -> None:
    assert "5 steps of a pass of 600. Not seen: later passes and stages. " in Unseen(pass_batches=600).describe(5)
    assert "Watched: 33 steps. Not seen" in Unseen(pass_batches=31, steps_of_a_pass=33).describe(26)
    said = Unseen(unused_loaders=1, frozen_weights=8, weights=12).describe(5)
    assert "a DataLoader without a batch, training the 8 of 12 weights that are frozen now" in said


def test_a_data_set_that_is_made_anew_for_each_epoch_is_said_once() -> None:
    assert describe_whole_run(SEEN | {"data": [LOOKED, LOOKED]}).count("all 5,000 rows") == 1


def test_of_an_error_its_class_alone_is_said_and_of_other_texts_none() -> None:
    said = [said_of(problem=each) for each in (f"{NO_LARGEST_BATCH}: KeyError: 50x as fast", "50x as fast")]
    assert f"({NO_LARGEST_BATCH}: KeyError)" in said[0]
    assert "(the result file says why)" in said[1]


def test_every_problem_that_the_hook_names_has_its_words() -> None:
    texts = {
        value.value
        for path in (ROOT / "engine" / "trainings" / "script" / "hook").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "problem" and isinstance(value, ast.Constant)
    }
    assert texts == {*PROBLEMS}
    assert NO_LARGEST_BATCH in (ROOT / "engine" / "trainings" / "script" / "hook" / "memorymark_epoch.py").read_text()


def test_rows_of_an_evaluation_are_not_called_trained() -> None:
    assert "and the largest were trained" in said_of()
    text = said_of(is_trained=False)
    assert "and the largest were used, without training" in text
    assert "what was trained came from no DataLoader" in text


def test_a_batch_that_is_too_small_for_all_of_the_largest_rows_says_how_many_were_trained() -> None:
    assert "2 of the 3 that are the largest in one of their parts were trained" in said_of(leading_given=2)


def test_the_optimizers_are_counted_where_there_are_several() -> None:
    assert "optimizers" not in describe_whole_run(SEEN)
    assert "each of its 2 optimizers made at least 5 steps" in describe_whole_run(SEEN | {"optimizers": 2})


def test_what_the_length_of_texts_was_judged_by_is_said() -> None:
    assert "judged" not in said_of()
    assert "8 to 512 characters, their length was judged by characters, not by tokens" in said_of(is_text=True)
    assert "the 900 longest were put in order by what the collate function makes" in said_of(collated=900)
    assert "all were put in order by what the collate function makes" in said_of(collated=5_000)


def tokens_of(rows: list[tuple[str, int]]) -> list[list[int]]:
    return [[1] * len(text.split()) for text, _ in rows]


class Sentences(list):
    """Rows of a text and a label."""


def test_texts_are_ordered_by_the_tokens_that_the_collate_function_makes_of_them(tmp_path: Path) -> None:
    import torch

    data = Sentences([("a " * 10, 0), ("incomprehensible " * 3, 0), ("b " * 12, 0)])
    path = str(tmp_path / "rows.json")
    found = largest_rows(torch, data, path, 20.0, collate=tokens_of)
    assert (found["rows"], found["is_text"], found["collated"]) == ([2, 0, 1], False, 3)


@pytest.mark.parametrize("collate", [list, lambda _: 1 / 0])
def test_texts_that_stay_texts_or_cannot_be_collated_alone_are_judged_by_characters(
    collate: Callable, tmp_path: Path
) -> None:
    import torch

    data = Sentences([("a " * 10, 0), ("incomprehensible " * 3, 0), ("b " * 12, 0)])
    found = largest_rows(torch, data, str(tmp_path / "rows.json"), 20.0, collate=collate)
    assert (found["rows"], found["is_text"]) == ([1, 2, 0], True)


def test_the_peak_is_named_by_its_part_of_the_training() -> None:
    assert (
        describe_peak("backward", (40, 512), 2**20)
        == "the peak of 1.0 MiB is in backward of a batch of 40 with rows of 512"
    )
    assert describe_peak("evaluation", (), 2**20) == "the peak of 1.0 MiB is in the evaluation"
    assert describe_peak("between_steps", (), 2**20) == "the peak of 1.0 MiB is between the steps"


def test_an_evaluation_that_keeps_its_outputs_is_told_from_one_that_frees_them() -> None:
    assert longest_evaluation([900, 100, None, None, 900, 100, 110, 120, 130, None, 50]) == [900, 100, 110, 120, 130]
    assert kept_each([900, 100, 110, 120, 130]) == 10
    assert kept_each([900, 100, 110, 100, 110]) == 0


def watched(batch_size: int, tmp_path: Path, *arguments: str, whole_run: bool = True) -> tuple[Reading, Memory]:
    watching = Watching(5, timed_steps=1, whole_run=whole_run, rows_folder=str(tmp_path))
    readings, _ = started(SCRIPT, batch_size, watching, "{out}", *arguments)
    (reading,) = [each for each in readings if each.is_done]
    memory = reading.memory()
    assert memory is not None
    return reading, memory


@pytest.mark.slow
def test_the_longest_row_the_evaluation_a_checkpoint_and_the_short_batch_are_met_within_a_few_steps(
    tmp_path: Path,
) -> None:
    reading, memory = watched(40, tmp_path)
    seen = reading.whole_run
    assert seen is not None
    assert [each["looked"] for each in seen["data"]] == [501, 600]
    assert (seen["short_batch"], seen["checkpoints"]) == (501 % 40, 2)
    assert seen["evaluation_batches"] > 0
    assert memory.shape == (40, 256)
    assert len(reading.steps()) < 20
    assert memory.peak_bytes > watched(40, tmp_path, whole_run=False)[1].peak_bytes


@pytest.mark.slow
def test_an_evaluation_that_is_larger_than_the_training_holds_the_peak(tmp_path: Path) -> None:
    assert watched(4, tmp_path, "evaluates")[1].phase == "evaluation"


@pytest.mark.slow
def test_a_tuned_whole_run_says_what_it_saw_and_what_held_the_peak(tmp_path: Path) -> None:
    options = ("--json", "--whole-run", "--no-compare-speed", "--memory-limit", "16MiB")
    command = [sys.executable, "-m", "engine", "tune", "--device", "cpu", *options]
    script = ["--", sys.executable, str(SCRIPT), "{batch_size}", "{out}"]
    done = subprocess.run([*command, *script], cwd=ROOT, capture_output=True, text=True, timeout=600, env=os.environ)
    result = json.loads(done.stdout)
    largest = result["boundary"]["largest_batch_size"]
    assert result["boundary"]["certified"]
    assert f"of a batch of {largest} with rows of 256" in result["boundary"]["note"]
    assert result["training"]["whole_run"]["checkpoints"] == 2
    assert differing(result) == []


def test_data_that_a_script_shuffles_in_each_start_is_looked_through_again(tmp_path: Path) -> None:
    assert look(Rows([3, 9, 5, 7]), tmp_path)["rows"] == [1, 3, 2, 0]
    assert look(Rows([9, 3, 7, 5]), tmp_path)["rows"] == [0, 2, 3, 1]


def test_rows_that_are_numbers_of_which_the_loader_makes_batches_have_no_size(tmp_path: Path) -> None:
    import torch

    found = largest_rows(torch, range(2_000), str(tmp_path / "rows.json"), 20.0, collate=torch.tensor)
    assert (found["rows"], found["looked"]) == ([], 0)
    assert "rows have no size" in found["problem"]
