"""What the hook reads of a training's objects in its process."""

import copy
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import memorymark_cards
import memorymark_read
import pytest
import torch
from memorymark_optimizers import Stepped
from memorymark_watch import Stage, Watch

from engine.trainings.script.hook.memorymark_read import (
    held_bytes,
    idle_optimizers,
    inputs_of,
    shapes_of,
    shortened,
)
from engine.trainings.script.start.environment import HOOK


def test_a_module_at_the_address_of_an_optimizer_that_was_freed_is_no_optimizer() -> None:
    module = torch.nn.Linear(8, 8)
    addresses = held_bytes(torch, {id(module)})
    assert module.weight.data_ptr() in addresses


def _moving_average(module: torch.nn.Module) -> Any:
    return {name: weight.detach().clone() for name, weight in module.named_parameters()}


def _best_so_far(module: torch.nn.Module) -> Any:
    return copy.deepcopy(module.state_dict())


def _moments_by_hand(module: torch.nn.Module) -> Any:
    return [torch.zeros_like(weight) for weight in module.parameters()]


@pytest.mark.parametrize("kept", [_moving_average, _best_so_far, _moments_by_hand])
def test_copies_of_the_weights_that_a_script_keeps_are_counted_without_an_optimizer(kept: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    copies = kept(module)
    addresses = held_bytes(torch, set())
    tensors = copies.values() if isinstance(copies, dict) else copies
    assert {each.data_ptr() for each in tensors} <= addresses.keys()


def test_an_optimizer_with_a_number_in_its_state_is_read() -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(8, 8).parameters(), lr=0.1)
    optimizer.state["step"] = 0
    assert held_bytes(torch, {id(optimizer)})


def test_a_checkpoint_on_the_thread_of_a_backward_pass_is_not_where_the_training_is(tmp_path: Path) -> None:
    made, block = watch(tmp_path), torch.nn.Linear(8, 8)
    made.torch, made.device, made.stage = torch, torch.device("cpu"), Stage.READING_MEMORY
    made.forwards.thread = 7
    hooked = block.weight.register_hook(lambda _: made.forwards.begin(block))
    block(torch.ones(2, 8)).sum().backward()
    assert made.forwards.thread == 7
    hooked.remove()
    made.forwards.depth = 0
    made.forwards.begin(block)
    assert made.forwards.thread == threading.get_ident()


def test_an_optimizer_that_made_no_step_is_told_from_those_that_did_and_those_that_were_freed() -> None:
    first, second = (torch.optim.SGD(torch.nn.Linear(8, 8).parameters()) for _ in range(2))
    assert idle_optimizers(torch, {id(first), id(second), 1}, {id(first): 3}) == 1


def test_an_optimizer_around_the_one_that_steps_is_not_idle() -> None:
    class Around(torch.optim.Optimizer):
        """As those of sharpness-aware minimization are written: the script calls two steps of other names."""

        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"rho": 0.05})
            self.base_optimizer = torch.optim.SGD(self.param_groups, lr=0.1)
            self.param_groups = self.base_optimizer.param_groups

    around, other = Around(torch.nn.Linear(8, 8).parameters()), torch.optim.SGD(torch.nn.Linear(8, 8).parameters())
    made = {id(around), id(around.base_optimizer), id(other)}
    assert idle_optimizers(torch, made, {id(around.base_optimizer): 3, id(other): 3}) == 0
    assert idle_optimizers(torch, made, {id(around.base_optimizer): 3}) == 1


def test_a_long_message_is_noted_with_the_error_of_the_rank_at_its_end() -> None:
    text = f"-- Process 1 terminated:{' frame' * 1_000} OutOfMemoryError: CUDA out of memory"
    noted = shortened(text)
    assert (noted[:12], noted[-18:], len(noted)) == ("-- Process 1", "CUDA out of memory", 2_005)
    assert shortened("short") == "short"


def test_the_first_line_of_each_file_that_runs_in_the_users_process_names_its_task_as_the_document_says() -> None:
    document = Path(__file__).parents[4] / "docs" / "tune.md"
    assert "(../engine/trainings/script/hook/)" in document.read_text()
    assert "each file's first line names its task" in document.read_text()
    assert [path.name for path in HOOK.glob("*.py") if not re.match(r'"""[A-Z].*\.', path.read_text())] == []


def watch(folder: Path) -> Any:
    """A watch of rank 0 of two."""
    made = Watch({"folder": str(folder)})
    made.group = (0, 2)
    return made


def test_a_late_rank_ends_all_after_its_next_step(tmp_path: Path) -> None:
    late, other = watch(tmp_path), watch(tmp_path)
    assert late.steps.last(10, is_late=False) == sys.maxsize
    assert late.steps.last(10, is_late=True) == 11
    assert other.steps.last(9, is_late=False) == other.steps.last(12, is_late=True) == 11


@pytest.mark.parametrize("watched", ["cpu", "cuda:0"])
def test_a_model_that_ran_on_the_cpu_first_has_its_card_noted_once_it_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: str
) -> None:
    made, module = watch(tmp_path), torch.nn.Linear(8, 8)
    made.torch, made.settings = torch, {"limit_bytes": None}
    made.device = torch.device(watched)  # of the model, or of another one that trains already
    made.cards.meet(module)
    monkeypatch.setattr(memorymark_cards, "cards_of", lambda _: {1})
    made.device = torch.device("cuda:1")
    made.cards.meet(module)
    assert made.cards.numbers == {1}


@pytest.mark.parametrize("has_schedule", [False, True])
def test_an_optimizer_that_is_made_anew_in_each_epoch_goes_on_counting(tmp_path: Path, *, has_schedule: bool) -> None:
    made, module = watch(tmp_path), torch.nn.Linear(8, 8)
    made.torch, made.device, made.stage = torch, torch.device("cpu"), Stage.READING_MEMORY
    made.settings |= {"memory_steps": 100, "timed_steps": 100, "timed_seconds": 1e9}

    kept = []

    def train() -> None:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        kept.append(torch.optim.lr_scheduler.StepLR(optimizer, 1) if has_schedule else None)
        for _ in range(3):
            made.steps.end(optimizer)

    for _ in range(4):
        train()
    assert list(made.steps.counts.values()) == [12]
    assert len(kept) == 4


def test_optimizers_of_other_weights_or_of_another_class_are_counted_apart() -> None:
    made, one, other = Stepped(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    optimizers = [
        torch.optim.SGD(one.parameters(), lr=0.1),
        torch.optim.SGD(other.parameters(), lr=0.1),
        torch.optim.Adam(one.parameters()),
    ]
    assert [made.number(each) for each in optimizers] == list(map(id, optimizers))
    assert made.ids() == set(map(id, optimizers))


def test_an_optimizer_over_new_weights_goes_on_for_one_that_steps_no_more() -> None:
    made, kept, numbers = Stepped(), [], []
    for width in (8, 8, 4):  # the first two are kept, as by a schedule each; nothing is left of the third
        optimizer = torch.optim.SGD(torch.nn.Linear(8, width).parameters(), lr=0.1)
        made.made(optimizer)
        numbers.append(made.number(optimizer))
        kept += [optimizer] if width == 8 else []
    del optimizer
    last = torch.optim.SGD(torch.nn.Linear(8, 2).parameters(), lr=0.1)
    made.made(last)
    assert numbers[0] == numbers[1] != numbers[2] == made.number(last)


def test_optimizers_are_not_looked_through_in_the_steps_that_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = watch(tmp_path)
    made.torch, made.device, made.stage = torch, torch.device("cpu"), Stage.TIMING
    made.settings |= {"memory_steps": 5, "timed_steps": 100, "timed_seconds": 1e9}
    made.steps.optimizers, made.steps.counts = {1, 2}, {1: 6}  # one of two was replaced before it made a step
    monkeypatch.setattr(memorymark_read, "idle_optimizers", lambda *_: pytest.fail("it was looked for"))
    made.steps.count(1)
    assert made.steps.counts == {1: 7}


@dataclass(slots=True)
class Batch:
    words: torch.Tensor


@pytest.mark.parametrize(
    "given",
    [SimpleNamespace(name="a", words=torch.ones(3, 9)), Batch(torch.ones(3, 9)), ["one", "two", "three"]],
    ids=["object", "dataclass", "texts"],
)
def test_the_rows_of_an_object_or_of_texts_are_those_of_a_batch(given: Any) -> None:
    for value in (given, [(given, "mean"), {}], [(torch.nn.Linear(8, 8),), {"batch": given}]):
        assert inputs_of(torch, value)[0] == [3]
        assert shapes_of(torch, value) == ([] if isinstance(given, list) else [[3, 9]])


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([{"name": "a", "image": torch.ones(3, 8, 9)}, {"name": "b", "image": torch.ones(3, 9, 8)}], 2),
        ([{"image": torch.ones(3, 8, 9), "boxes": torch.ones(5, 4)}], 1),
        ([{"image": torch.ones(3, 8, 9), "label": torch.tensor(5)}, {"image": torch.ones(3, 8, 9)}], 2),
        ([{"features": torch.ones(3, 100, 80)}, {"mel": torch.ones(3, 100, 80)}], 3),  # a collated pair
        ([{"features": torch.ones(3, 100, 80)}, {"features": torch.ones(3, 100, 80)}], 3),
        ({"features": torch.ones(3, 100, 80)}, 3),
    ],
)
def test_only_a_list_of_dicts_with_one_image_each_is_a_batch_of_as_many(given: Any, rows: int) -> None:
    for value in (given, [(given,), {}]):
        shape, _, _ = inputs_of(torch, value)
        assert (shape or [None])[0] == rows


def test_a_batch_within_torch_func_is_the_whole_one_with_its_memory() -> None:
    rows, seen = torch.ones(8, 4), []
    torch.func.vmap(torch.func.grad(lambda row: seen.append(inputs_of(torch, [row])) or row.sum()))(rows)
    assert seen == [([8], None, [[rows.data_ptr(), 128, True]])]
