"""What the hook reads of a training's objects in its process."""

import re
from pathlib import Path

import torch

import engine
from engine.tune.hook.memorymark_read import gradients, held_bytes, idle_optimizers, shortened


def test_a_module_at_the_address_of_an_optimizer_that_was_freed_is_no_optimizer() -> None:
    module = torch.nn.Linear(8, 8)
    addresses = held_bytes(torch, {id(module)})
    assert module.weight.data_ptr() in addresses


def test_a_gradient_that_was_freed_is_known_by_its_reference() -> None:
    module = torch.nn.Linear(8, 8, bias=False)
    module(torch.randn(2, 8)).sum().backward()
    address = module.weight.grad.data_ptr()
    (reference,) = [each for each, at in gradients(torch) if at == address]
    assert reference() is module.weight.grad
    module.weight.grad = None
    assert reference() is None


def test_an_optimizer_that_made_no_step_is_told_from_those_that_did_and_those_that_were_freed() -> None:
    first, second = (torch.optim.SGD(torch.nn.Linear(8, 8).parameters()) for _ in range(2))
    assert idle_optimizers(torch, {id(first), id(second), 1}, {id(first): 3}) == 1


def test_a_long_message_is_noted_with_the_error_of_the_rank_at_its_end() -> None:
    text = f"-- Process 1 terminated:{' frame' * 1_000} OutOfMemoryError: CUDA out of memory"
    noted = shortened(text)
    assert (noted[:12], noted[-18:], len(noted)) == ("-- Process 1", "CUDA out of memory", 2_005)
    assert shortened("short") == "short"


def test_the_first_line_of_each_file_that_runs_in_the_users_process_names_its_task_as_the_document_says() -> None:
    hook, document = Path(engine.__file__).parent / "tune" / "hook", Path(__file__).parents[3] / "docs" / "tune.md"
    assert "(../engine/tune/hook/)" in document.read_text()
    assert "each file's first line names its task" in document.read_text()
    assert [path.name for path in hook.glob("*.py") if not re.match(r'"""[A-Z].*\.', path.read_text())] == []
