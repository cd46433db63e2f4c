"""What the watch over a process takes for the training, for an evaluation and for neither."""

import ctypes
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import engine

sys.path.append(str(Path(engine.__file__).parent / "tune" / "hook"))  # as in a process that is watched
from memorymark_batch import goes_to_loaders
from memorymark_compiled import is_compiled
from memorymark_raised import Raised
from memorymark_watch import Watch

TRAINS, EVALUATES = 11, 12
"""The addresses of two data sets."""


@pytest.fixture
def watch(tmp_path: Path) -> Any:
    """A watch that times the steps of a training whose batches come from one of two data sets."""
    made: Any = Watch({"folder": str(tmp_path), "limit_bytes": None})
    made.torch, made.device, made.memory = torch, torch.device("cpu"), {}
    made.drawn_from = TRAINS
    made.mark("armed")
    return made


def call(watch: Any, module: nn.Module) -> list[str]:
    """Call a module, and return what was marked of it."""
    before = len(watch.marks)
    watch.before_forward(module)
    watch.after_forward(module, (torch.ones(2, 4),), {}, torch.ones(2, 4, requires_grad=True))
    return [mark[1] for mark in watch.marks[before:]]


def test_a_frozen_model_that_looks_at_the_training_s_batches_is_no_evaluation(watch: Any) -> None:
    model, reward, average = nn.Linear(4, 1), nn.Linear(4, 1).eval(), nn.Linear(4, 1).eval()
    assert "forward" in call(watch, model)
    assert "evaluated" not in call(watch, reward)
    watch.drawn_from = EVALUATES
    assert "evaluated" in call(watch, average)
    watch.mark("step", 1)
    watch.drawn_from = TRAINS
    assert "evaluated" in call(watch, model.eval())


def test_a_frozen_part_that_runs_before_the_model_is_not_counted_as_an_evaluation_of_a_whole_run(watch: Any) -> None:
    watch.epoch = SimpleNamespace(has_not_trained=lambda: True, latest=SimpleNamespace(evaluations=0))
    call(watch, nn.Linear(4, 1).eval())
    assert watch.evaluations == 1
    call(watch, nn.Linear(4, 1))
    assert watch.evaluations == 0


def test_a_loader_that_draws_on_a_thread_of_its_own_hides_no_forward_pass(watch: Any) -> None:
    watch.loading = {threading.get_ident() + 1}
    assert "forward" in call(watch, nn.Linear(4, 1))
    watch.loading = {threading.get_ident()}
    assert call(watch, nn.Linear(4, 1)) == []


def test_an_error_made_in_c_counts_once_python_code_is_given_it() -> None:
    kind = type("OutOfMemoryError", (RuntimeError,), {})
    raised = Raised(SimpleNamespace(OutOfMemoryError=kind))
    assert raised.count == 0
    set_string = ctypes.pythonapi.PyErr_SetString
    set_string.argtypes, set_string.restype = [ctypes.py_object, ctypes.c_char_p], None
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        set_string(kind, b"CUDA out of memory")
    assert raised.count == 1
    assert Raised(SimpleNamespace(cuda=SimpleNamespace())).count is None


def test_a_module_that_holds_a_compiled_function_is_compiled() -> None:
    plain, by_forward, by_method = (nn.Linear(4, 1) for _ in range(3))
    by_forward.forward = torch.compile(by_forward.forward, backend="eager")  # type: ignore[method-assign]
    by_method.training_forward = torch.compile(by_method.forward, backend="eager")  # type: ignore[assignment]
    assert [is_compiled(each) for each in (plain, by_forward, by_method)] == [False, True, True]
    plain.compile(backend="eager")
    assert is_compiled(plain)


class OwnLoader(DataLoader[Any]):
    """A loader that is made without torch's own `__init__`, as torchdata's is."""

    def __init__(self, dataset: Any, batch_size: int = 1, num_workers: int = 0) -> None:
        self.made_with = batch_size, num_workers


@pytest.mark.parametrize("is_early", [True, False])
def test_a_loader_of_a_library_is_given_what_is_tried_whenever_it_is_imported(
    watch: Any, monkeypatch: pytest.MonkeyPatch, is_early: bool
) -> None:
    monkeypatch.setattr(OwnLoader, "__init__", OwnLoader.__init__)  # it is taken back
    watch.settings |= {"batch_size": 24}
    order = [lambda: watch.see_loaders(OwnLoader), lambda: watch.change_loaders(goes_to_loaders)]
    for step in order if is_early else reversed(order):
        step()
    assert OwnLoader([1, 2], batch_size=8).made_with == (24, 0)
