"""What the watch over a process takes for the training and for an evaluation, and a card's peaks step by step."""

import ctypes
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from memorymark_batch import goes_to_loaders
from memorymark_cards import Cards
from memorymark_compiled import is_compiled
from memorymark_epoch import Epoch
from memorymark_forwards import Raised
from memorymark_watch import Stage, Watch
from torch import nn
from torch.utils.data import DataLoader


@pytest.fixture
def watch(tmp_path: Path) -> Any:
    """A watch of a training whose steps are timed."""
    made: Any = Watch({"folder": str(tmp_path), "limit_bytes": None})
    made.torch, made.device, made.stage = torch, torch.device("cpu"), Stage.TIMING
    made.mark("armed")
    return made


def call(watch: Any, module: nn.Module) -> list[str]:
    """Call a module, and return what was marked of it."""
    before = len(watch.marks)
    watch.forwards.begin(module)
    watch.forwards.end(module, (torch.ones(2, 4),), {}, torch.ones(2, 4, requires_grad=True))
    return [mark[1] for mark in watch.marks[before:]]


def test_a_frozen_model_that_the_first_steps_ran_is_no_evaluation_in_a_later_one(watch: Any) -> None:
    model, reward, average = nn.Linear(4, 1), nn.Linear(4, 1).eval(), nn.Linear(4, 1).eval()
    watch.stage = Stage.READING_MEMORY
    call(watch, model)
    call(watch, average)  # once, as where a script evaluates before its first step
    for step in (1, 2):
        watch.steps.counts = {7: step}
        call(watch, reward)
    watch.stage = Stage.TIMING
    assert "evaluated" not in call(watch, reward)
    assert "evaluated" in call(watch, average)
    watch.mark("step", 1)
    assert "evaluated" in call(watch, model.eval())


class Loader:
    """What a pass is drawn from."""

    def __init__(self, dataset: list[int]) -> None:
        self._dataset, self.memorymark_pass = dataset, None


def draw(watch: Any, loader: Loader) -> None:
    """Draw the second batch of a pass, of which the first has been drawn: no largest rows are looked for."""
    watch.epoch.draw(loader, lambda _: None)


@pytest.fixture
def whole_run(watch: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A watch over a whole run that has trained one batch."""
    watch.stage, watch.settings = Stage.READING_MEMORY, watch.settings | {"rows_folder": None, "memory_steps": 5}
    watch.epoch = Epoch(watch, torch)
    monkeypatch.setattr(watch.epoch, "know", lambda *_: None)
    monkeypatch.setattr(watch.epoch, "largest_batch", lambda _iterator, _now, batch: batch)
    return watch


def test_a_frozen_part_that_runs_before_the_model_is_no_evaluation_of_a_whole_run(whole_run: Any) -> None:
    encoder, model, data = nn.Linear(4, 4).eval(), nn.Linear(4, 1), [1, 2]
    for _ in range(2):  # epochs
        epoch = Loader(data)
        for _ in range(2):
            draw(whole_run, epoch)
            call(whole_run, encoder)
            call(whole_run, model)
    assert whole_run.epoch.seen()["evaluation_batches"] == 0


def test_a_part_that_a_step_runs_in_evaluation_mode_as_for_an_attack_is_no_evaluation(whole_run: Any) -> None:
    model, data = nn.Linear(4, 1), [1, 2]
    for _ in range(3):  # epochs
        epoch = Loader(data)
        for _ in range(2):
            draw(whole_run, epoch)
            call(whole_run, model.eval())
            call(whole_run, model.train())
    assert whole_run.epoch.seen()["evaluation_batches"] == 0


def test_a_validation_that_goes_on_with_one_iterator_trains_nothing(whole_run: Any) -> None:
    model, training, validation = nn.Linear(4, 1), Loader([1, 2]), Loader([3])
    for _ in range(3):
        draw(whole_run, training)
        call(whole_run, model.train())
        draw(whole_run, validation)
        call(whole_run, model.eval())
    assert ["is_trained" in each.noted for each in whole_run.epoch.data] == [True, False]


@pytest.mark.parametrize("is_average", [True, False])
def test_an_evaluation_of_one_batch_between_two_of_the_training_counts(whole_run: Any, is_average: bool) -> None:
    model, training, data = nn.Linear(4, 1), Loader([1, 2]), [3]
    average = nn.Linear(4, 1)
    for _ in range(3):
        draw(whole_run, training)
        call(whole_run, model.train())
        draw(whole_run, Loader(data))
        call(whole_run, (average if is_average else model).eval())
    draw(whole_run, training)
    call(whole_run, model.train())
    assert whole_run.epoch.seen()["evaluation_batches"] > 0
    assert "is_trained" not in whole_run.epoch.data[1].noted


def test_a_loader_that_draws_on_a_thread_of_its_own_hides_no_forward_pass(watch: Any) -> None:
    watch.loaders.drawing = [threading.get_ident() + 1]
    assert "forward" in call(watch, nn.Linear(4, 1))
    watch.loaders.drawing = [threading.get_ident()]
    assert call(watch, nn.Linear(4, 1)) == []


def test_each_failure_that_python_code_is_given_counts_also_one_made_in_c(watch: Any) -> None:
    def go_back() -> None:
        raise RuntimeError("CUDA out of memory, of a scripted function")

    kind = type("OutOfMemoryError", (RuntimeError,), {})
    scripted = type("ScriptFunction", (), {"__call__": lambda _: go_back()})
    made_up = SimpleNamespace(OutOfMemoryError=kind, autograd=SimpleNamespace(backward=go_back))
    made_up._C = SimpleNamespace(ScriptFunction=scripted)
    watch.forwards.raised = raised = Raised(made_up)
    assert raised.count == 0
    set_string = ctypes.pythonapi.PyErr_SetString
    set_string.argtypes, set_string.restype = [ctypes.py_object, ctypes.c_char_p], None
    with pytest.raises(kind, match="CUDA out of memory"):
        set_string(kind, b"CUDA out of memory")
    assert raised.count == 1
    for fails in (made_up.autograd.backward, scripted()):
        with pytest.raises(RuntimeError, match="scripted"):
            fails()
    watch.forwards.begin(model := nn.Linear(4, 1))
    watch.forwards.end(model, (torch.ones(2, 4),), None)
    assert raised.count == 4
    assert Raised(SimpleNamespace(cuda=SimpleNamespace())).count is None


def test_a_checkpoint_that_ends_its_modules_early_on_the_way_back_fails_nothing(watch: Any) -> None:
    watch.forwards.raised, block = SimpleNamespace(failed=lambda: pytest.fail("it counts")), nn.Linear(4, 1)
    output = block(torch.ones(2, 4))

    def again(_: Any) -> None:
        watch.forwards.begin(block)
        watch.forwards.end(block, (torch.ones(2, 4),), None)

    output.register_hook(again)
    output.sum().backward()


def test_a_module_that_holds_a_compiled_function_is_compiled() -> None:
    plain, by_forward, by_method = (nn.Linear(4, 1) for _ in range(3))
    by_forward.forward = torch.compile(by_forward.forward, backend="eager")  # type: ignore[method-assign]
    by_method.training_forward = torch.compile(by_method.forward, backend="eager")  # type: ignore[assignment]
    assert [is_compiled(each) for each in (plain, by_forward, by_method)] == [False, True, True]
    plain.left_out = torch.compiler.disable(plain.forward)  # type: ignore[assignment]
    assert not is_compiled(plain)
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
    for kind in (DataLoader, OwnLoader):
        monkeypatch.setattr(kind, "__init__", kind.__init__)  # it is taken back
    watch.settings |= {"batch_size": 24}
    order = [lambda: watch.loaders.see(OwnLoader), lambda: watch.loaders.change(goes_to_loaders)]
    for step in order if is_early else reversed(order):
        step()
    assert OwnLoader([1, 2], batch_size=8).made_with == (24, 0)


class Card:
    """The counters of a card's allocator, which rounds each allocation up to 512 bytes."""

    def __init__(self) -> None:
        self.held = self.peak = 0

    def allocate(self, size: int) -> None:
        self.held += size
        self.peak = max(self.peak, self.held)

    def memory_stats(self, _: int) -> dict[str, int]:
        rounded = -(-self.peak // 512) * 512
        return {
            "requested_bytes.all.peak": self.peak,
            "allocated_bytes.all.peak": rounded,
            "allocated_bytes.all.current": self.held,
            "reserved_bytes.all.peak": 2 * rounded,
        }

    def reset_peak_memory_stats(self, _: int) -> None:
        self.peak = self.held


def test_each_step_has_its_own_peak_without_what_ran_between_and_the_whole_has_the_most() -> None:
    card, found = Card(), []
    cards = Cards(SimpleNamespace(torch=SimpleNamespace(cuda=card)))
    cards.numbers = {0}
    for taken in (1_000, 3_000, 700):
        cards.begin_step()
        card.allocate(taken)
        card.allocate(-taken)
        found.append(cards.end_step(7)[:2])
        card.allocate(9_000)  # an evaluation
        card.allocate(-9_000)
    assert found == [(1_000, 1_024), (3_000, 3_072), (700, 1_024)]
    assert cards.count(0)["allocated_bytes.all.peak"] == 9_216
    assert cards.count(0)["reserved_bytes.all.peak"] == 2 * 9_216


@pytest.mark.parametrize(
    ("is_integrated", "limit_bytes", "share"),
    [(False, None, None), (False, 600, 0.6), (True, None, 0.4), (True, 300, 0.3)],
)
def test_a_card_without_memory_of_its_own_takes_at_most_what_the_host_can_spare(
    *, is_integrated: bool, limit_bytes: int | None, share: float | None
) -> None:
    set_to = []
    cuda = SimpleNamespace(
        current_device=lambda: 0,
        get_device_properties=lambda _: SimpleNamespace(total_memory=1_000, is_integrated=is_integrated),
        set_per_process_memory_fraction=lambda share, _: set_to.append(share),
    )
    settings = {"limit_bytes": limit_bytes, "room_for_gpu_bytes": 400}
    Cards(SimpleNamespace(torch=SimpleNamespace(cuda=cuda), settings=settings)).limit_memory()
    assert set_to == ([] if share is None else [share])
