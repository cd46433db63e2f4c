"""What the hook reads of a training's objects in its process."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import torch

import engine
from engine.tune.hook.memorymark_read import gradients, held_bytes, idle_optimizers, shortened
from engine.tune.start.launch import LAST_STEP

HOOK = Path(engine.__file__).parent / "tune" / "hook"
sys.path.append(str(HOOK))  # as in a process that is watched
from memorymark_watch import Watch  # noqa: E402


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


def watch(folder: Path, host: dict[str, object] | None) -> Any:
    """A watch of rank 0 of two whose five timed steps took half a second each."""
    made = Watch({"folder": str(folder), "host": host})
    made.group, made.first_timed, made.timed_from = (0, 2), 5, time.monotonic() - 2.5
    return made


def test_a_late_rank_ends_all_after_its_next_step_and_of_several_hosts_early_enough_to_tell_them(tmp_path) -> None:
    alone, decides, follows = (tmp_path / name for name in ("alone", "decides", "follows"))
    for folder in (alone, decides, follows):
        folder.mkdir()
    assert watch(alone, None).last_step(10, is_late=True) == 11
    here = {"name": "a", "decides": True, "notice_seconds": 0.9}
    assert watch(decides, here).last_step(10, is_late=False) == sys.maxsize
    assert watch(decides, here).last_step(10, is_late=True) == 13
    there = watch(follows, {"name": "b", "decides": False, "notice_seconds": 0.0})
    assert there.last_step(10, is_late=True) == sys.maxsize
    (follows / LAST_STEP).write_text("13")
    assert there.last_step(12, is_late=False) == 13
