"""What was there before a training, or is another thread's, counts as the training's memory where it is."""

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from memorymark_held import CpuMemory
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine.errors import CommandUntunable
from engine.trainings.script.judge.evidence import Evidence
from engine.trainings.script.notes.memory import cpu_memory
from engine.trainings.script.start.launch import Watching
from tests.engine.trainings.script.starts import SCRIPTS, started
from tests.engine.trainings.script.test_evidence import judged

MIB = 2**20


@pytest.fixture(scope="module")
def before() -> Iterator[int]:
    """What torch takes for given out already: it did not see the end of what other tests had profiled."""
    gc.collect()
    made = CpuMemory(torch)
    yield peak_bytes(made, lambda: None)
    made.end()


@pytest.fixture
def memory(before: int) -> Any:
    made: Any = CpuMemory(torch)
    made.before = before
    return made


def peak_bytes(memory: Any, step: Callable[[], object]) -> int:
    """Watch a step, and return the peak beside what modules of other tests hold."""
    memory.begin(set())
    of_others = sum(memory.held.uncounted.values()) + getattr(memory, "before", 0)
    torch.ones(1)
    step()
    torch.ones(1)
    memory.end()
    CpuMemory(torch)  # it goes on counting
    noted = memory.noted()
    return cpu_memory(noted["data"], noted["events"], [], noted["uncounted_bytes"]).peak_bytes - of_others


def is_about(found: int, wanted: int) -> bool:
    return wanted <= found < wanted + MIB // 8


def test_a_plain_tensor_that_the_training_only_reads_is_data_and_is_told(memory: Any) -> None:
    rows = torch.ones(1024, 1024)
    assert is_about(peak_bytes(memory, lambda: rows[:2].sum()), 0)
    assert memory.held.only_read_bytes >= 4 * MIB


def test_a_plain_tensor_that_the_training_writes_is_its_own_as_a_memory_bank(memory: Any) -> None:
    bank, of_numpy = torch.ones(1024, 1024), torch.from_numpy(np.ones(MIB, dtype=np.uint8))

    def step() -> None:
        bank[3:4] = 2.0
        of_numpy[:7] = 1

    assert is_about(peak_bytes(memory, step), 5 * MIB)


def test_a_data_set_that_writes_its_rows_does_not_count(memory: Any) -> None:
    rows = torch.ones(1024, 1024)
    loader = DataLoader(TensorDataset(rows), batch_size=2)
    assert is_about(peak_bytes(memory, lambda: rows.mul_(2)), 0)
    assert memory.held.only_read_bytes < 4 * MIB
    assert len(loader) == 512


def test_what_a_pass_before_the_training_made_is_its_own_as_the_outputs_of_a_teacher(memory: Any) -> None:
    rows = torch.ones(1024, 1024)
    memory.first_pass()
    outputs = rows * 2
    assert is_about(peak_bytes(memory, lambda: outputs[:2].sum()), 4 * MIB)


def test_a_flat_copy_of_the_weights_and_a_table_of_a_module_that_is_no_buffer_count(memory: Any) -> None:
    model = nn.Linear(1024, 1024, bias=False)
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    model.tables = [torch.ones(512, 1024)]  # type: ignore[assignment]
    assert is_about(peak_bytes(memory, lambda: flat[:2].sum()), 10 * MIB)


def test_weights_that_are_replaced_count_once(memory: Any) -> None:
    model = nn.Linear(1024, 1024, bias=False)

    def step() -> None:
        model.weight.data = torch.empty(0)
        model.weight.data = torch.ones(1024, 1024)

    assert is_about(peak_bytes(memory, step), 4 * MIB)


def test_what_another_thread_holds_counts(memory: Any) -> None:
    kept = []

    def step() -> None:
        other = threading.Thread(target=lambda: kept.append(torch.ones(1024, 1024)))
        other.start()
        other.join()

    assert is_about(peak_bytes(memory, step), 4 * MIB)


def called(kind: str) -> Evidence:
    readings, ended = started(SCRIPTS / "calls.py", 24, Watching(5, timed_steps=1), kind)
    return judged(readings, 24, ended=ended, limit_bytes=None)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "micro_batches"), [("unrolled", 1), ("accumulated", 3), ("closure", 1)])
def test_without_a_loader_the_calls_of_one_backward_pass_are_one_micro_batch(kind: str, micro_batches: int) -> None:
    assert called(kind).micro_batches == micro_batches


@pytest.mark.slow
def test_two_trainings_in_threads_of_one_process_are_no_answer() -> None:
    with pytest.raises(CommandUntunable, match="2 threads of one process train side by side") as refused:
        called("threads")
    assert refused.value.code == "several_trainings"
