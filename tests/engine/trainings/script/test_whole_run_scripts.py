"""A whole run shortens a script's passes over its data and does not break the script."""

from dataclasses import replace
from pathlib import Path

import pytest
from memorymark_epoch import is_for_largest, rows_of_a_batch, same_as
from memorymark_rows import largest_rows

from engine.trainings.script.notes.memory import Memory
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.start.launch import Watching
from tests.engine.trainings.script.starts import started

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "benchmarks" / "tune_scripts" / "unusual_loops.py"


class Rows(list):  # of a class of its own, so that it can be referred to weakly
    pass


def test_a_data_set_is_not_taken_for_another_one_of_its_kind() -> None:
    rows, others = Rows([1, 2]), Rows([1, 2])
    assert same_as(rows)(rows)
    assert not same_as(rows)(others)


def test_a_freed_data_set_is_not_found_again_in_the_one_at_its_address() -> None:
    rows = Rows([1])
    is_same = same_as(rows)
    del rows
    assert not any(is_same(Rows([1])) for _ in range(10))
    short = [1, 2]
    is_same = same_as(short)
    short.append(3)
    assert not is_same(short)


def test_only_a_batch_sampler_of_torch_says_how_many_rows_a_batch_has() -> None:
    import torch

    class Tokens:
        batch_size = 4_096

    class Shard:  # as accelerate's
        split_batches, num_processes = True, 2
        batch_sampler = torch.utils.data.BatchSampler([1, 2, 3], 8, drop_last=False)

    assert rows_of_a_batch(torch, Shard.batch_sampler) == 8
    assert rows_of_a_batch(torch, Shard()) == 4
    assert rows_of_a_batch(torch, Tokens()) is None


@pytest.mark.parametrize("period", range(1, 9))
def test_no_place_in_a_scripts_own_cycle_of_batches_is_left_without_the_largest_rows(period: int) -> None:
    """As one of accumulated batches, or the one of five after which a second optimizer steps."""
    assert {number % period for number in range(5 * period) if is_for_largest(number)} == set(range(period))
    assert not all(is_for_largest(number) for number in range(5))


@pytest.fixture
def shortened(tmp_path: Path) -> Watching:
    return Watching(5, timed_steps=1, whole_run=True, rows_folder=str(tmp_path))


def shortened_and_to_its_end(
    script: Path, size: int, shortened: Watching, *arguments: str
) -> list[tuple[Reading, Memory]]:
    found = []
    for watching in (shortened, Watching(1_000_000)):
        (reading,), _ = started(script, size, watching, *arguments, seconds=600)
        memory = reading.memory()
        assert memory is not None
        found.append((reading, memory))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", ["plain", "ordered", "opens_later", "new_data", "token_batches", "random_rows"])
def test_a_script_that_runs_alone_runs_in_a_whole_run(case: str, shortened: Watching) -> None:
    (reading, *_), _ = started(SCRIPT, 16, shortened, case)
    assert (reading.is_done, reading.data["error_message"]) == (True, None)
    assert reading.whole_run is not None
    problem = reading.whole_run["data"][0].get("problem") or ""
    said = {"ordered": "do not follow each other", "token_batches": "of its own", "random_rows": "each time"}
    assert said.get(case, "") in problem
    assert bool(problem) == (case in said)


@pytest.mark.slow
def test_a_loop_that_counts_its_batches_is_started_again_and_not_shortened(shortened: Watching) -> None:
    first, second = (started(SCRIPT, 16, shortened, "counted")[0][0] for _ in range(2))
    assert first.ended == "cut"
    assert second.is_done


@pytest.mark.slow
@pytest.mark.parametrize("case", ["two_at_once", "later_optimizer", "stops_early", "evaluates_in_train_mode"])
def test_a_less_usual_loop_takes_no_more_in_its_full_run_than_a_whole_run_saw(case: str, shortened: Watching) -> None:
    script = SCRIPT.with_name("less_usual.py")
    (whole, seen), (full, taken) = shortened_and_to_its_end(script, 64, shortened, "{out}", case)
    assert len(whole.steps()) < len(full.steps())
    assert seen.peak_bytes >= taken.peak_bytes


def test_the_widest_and_the_highest_picture_come_first_though_others_have_more_pixels(tmp_path: Path) -> None:
    import torch

    pictures = [torch.zeros(3, *size) for size in [(20, 20), (20, 20), (10, 38), (20, 20), (38, 10)]]
    rows = largest_rows(torch, pictures, str(tmp_path / "rows.json"), 20.0)["rows"]
    assert set(rows[:3]) == {0, 2, 4}


def test_the_row_of_most_elements_comes_before_that_of_the_largest_first_part(tmp_path: Path) -> None:
    import torch

    rows = Rows([([1] * 9, [1]), ([1], [1] * 30), ([1] * 2, [1] * 20)])
    found = largest_rows(torch, rows, str(tmp_path / "rows.json"), 20.0)
    assert (found["rows"], found["leading"]) == ([1, 0, 2], 2)


@pytest.mark.slow
def test_a_batch_of_one_row_is_each_of_the_largest_in_turn(shortened: Watching) -> None:
    watching = replace(shortened, timed_steps=0)
    (reading,), _ = started(SCRIPT.with_name("heavy_tail.py"), 1, watching, "{out}", "two_parts")
    assert reading.whole_run is not None
    data = reading.whole_run["data"][0]
    assert data["leading_given"] == data["leading"] > 1


def test_rows_of_another_size_each_time_have_no_largest(tmp_path: Path) -> None:
    import torch

    class Growing(list):
        def __getitem__(self, row):
            self.append(row)
            return [1] * len(self)

    found = largest_rows(torch, Growing([1, 2]), str(tmp_path / "rows.json"), 20.0)
    assert (found["rows"], found["problem"]) == ([], "a row has another size each time")


DRAWS_AHEAD = """
import sys, torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(9):
    model.train()
    for x in DataLoader(torch.randn(40, 4), batch_size=int(sys.argv[1])):
        optimizer.zero_grad(); model(x).sum().backward(); optimizer.step()
    model.eval()
    for x in list(DataLoader(torch.randn(8, 4), batch_size=8)):
        model(x)
"""


@pytest.mark.slow
def test_an_evaluation_whose_batches_are_drawn_before_the_first_is_used_was_seen(
    shortened: Watching, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(DRAWS_AHEAD)
    readings, _ = started(script, 8, shortened)
    (seen,) = [each.whole_run for each in readings if each.is_done]
    assert seen is not None
    assert seen["evaluation_batches"] == 1


STAGES = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader
batch_size, case = int(sys.argv[1]), sys.argv[2]
data, held_out = torch.randn(600, 32), torch.randn(400, 32)
head, body = nn.Linear(64, 4), nn.Sequential(nn.Linear(32, 64), nn.ReLU())
model, copy = nn.Sequential(body, head), None
body.requires_grad_(case != "unfreezes")
optimizer = torch.optim.AdamW(head.parameters() if case == "unfreezes" else model.parameters())
for epoch in range(12):
    if epoch == 8 and case == "unfreezes":
        body.requires_grad_(True)
        optimizer = torch.optim.AdamW(model.parameters())
    if epoch == 8 and case == "another_network":
        model = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 4))
        optimizer = torch.optim.AdamW(model.parameters())
    if epoch == 8 and case == "averages":
        copy = torch.optim.swa_utils.AveragedModel(model)
    for x in DataLoader(data, batch_size=batch_size, shuffle=True):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if copy is not None:
            copy.update_parameters(model)
with torch.no_grad():
    outputs = [model.eval()(x) for x in DataLoader(held_out, batch_size=200 if case == "evaluates_last" else 4)]
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", ["unfreezes", "another_network", "averages", "evaluates_last"])
def test_what_a_script_changes_after_some_epochs_is_met_within_a_few_steps(
    case: str, shortened: Watching, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(STAGES)
    (whole, seen), (full, taken) = shortened_and_to_its_end(script, 8, shortened, case)
    assert seen.peak_bytes == taken.peak_bytes
    assert len(whole.steps()) < len(full.steps()) / 10
    assert whole.whole_run is not None
    assert (whole.whole_run["is_to_its_end"], whole.whole_run["passes"]) == (True, 12)
