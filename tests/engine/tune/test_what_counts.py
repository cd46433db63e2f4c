"""What counts as a training's memory does not hang on how its script is written."""

import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.launch import Watching, start

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "tune_scripts"
PARAMETERS_BYTES = 4 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
SIZE = 1_000


def peak_bytes(name: str, *arguments: str) -> int:
    command = (sys.executable, str(SCRIPTS / name), "{batch_size}", *arguments)
    begin = partial(begin_command, TuneSpec(command, device="cpu"))
    readings, _ = start(begin, SIZE, Watching(5, timed_steps=1), seconds=300)
    (memory,) = [each.memory() for each in readings if each.is_done]
    return memory.peak_bytes


def test_a_batch_counts_whether_a_worker_process_made_it_or_not() -> None:
    assert peak_bytes("workers.py", "0") == peak_bytes("workers.py", "2")


def test_loader_workers_that_were_killed_leave_no_folder_of_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # a path that is short enough for a socket
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        peak_bytes("workers.py", "2")
        assert [each.name for each in Path(folder).iterdir() if each.name.startswith(("pymp", "memorymark"))] == []


def test_a_batch_counts_whether_gathered_sliced_or_made_once_and_the_data_set_never() -> None:
    gathered = peak_bytes("whole_data.py", "gather")
    assert gathered < 100_000_000
    assert peak_bytes("whole_data.py", "slice") == peak_bytes("whole_data.py", "once") == gathered


def test_an_averaged_copy_of_the_model_counts_with_its_very_bytes() -> None:
    assert peak_bytes("averaged.py", "ema") - peak_bytes("averaged.py") == PARAMETERS_BYTES


def test_a_module_that_the_data_set_calls_for_each_row_is_not_the_model() -> None:
    script = Path(__file__).parent / "scripts" / "transforms.py"
    begin = partial(begin_command, TuneSpec((sys.executable, str(script), "{batch_size}"), device="cpu"))
    found = [start(begin, size, Watching(5, timed_steps=1), seconds=300)[0][0] for size in (16, 48)]
    shapes = {tuple(shape) for reading in found for step in reading.steps() for _, shape, _ in step.forwards}
    assert shapes == {(16,), (48,)}
    curves = [memory.curve for reading in found if (memory := reading.memory())]
    assert len(curves[0]) == len(curves[1])  # otherwise two starts do not tell where the limit lies


def test_a_forward_pass_that_failed_and_was_caught_hides_none_of_the_later_ones() -> None:
    script = Path(__file__).parent / "scripts" / "catches_a_failure.py"
    begin = partial(begin_command, TuneSpec((sys.executable, str(script), "{batch_size}"), device="cpu"))
    (reading,), _ = start(begin, 16, Watching(5, timed_steps=1), seconds=300)
    assert {tuple(shape) for step in reading.steps() for _, shape, _ in step.forwards} == {(16,)}
