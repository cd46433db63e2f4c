"""What counts as a training's memory and as its batch does not hang on how its script is written."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.facts.result import Outcome
from engine.trainings.script.judge.evidence import Evidence
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.start.launch import Watching
from tests.engine.trainings.script.starts import SCRIPTS, started
from tests.engine.trainings.script.test_evidence import judged

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

OF_BENCHMARKS = Path(__file__).parents[4] / "benchmarks" / "tune_scripts"
PARAMETERS_BYTES = 4 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
SIZE = 1_000
WATCHING = Watching(5, timed_steps=1)


def peak_bytes(name: str, *arguments: str) -> int:
    readings, _ = started(OF_BENCHMARKS / name, SIZE, WATCHING, *arguments)
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
    found = [started(SCRIPTS / "transforms.py", size, WATCHING)[0][0] for size in (16, 48)]
    shapes = {each.shape for reading in found for step in reading.steps() for each in step.forwards}
    assert shapes == {(16,), (48,)}
    curves = [memory.curve for reading in found if (memory := reading.memory())]
    assert len(curves[0]) == len(curves[1])  # otherwise two starts do not tell where the limit lies


def test_a_forward_pass_that_failed_and_was_caught_hides_none_of_the_later_ones() -> None:
    (reading,), _ = started(SCRIPTS / "catches_a_failure.py", 16, WATCHING)
    assert {each.shape for step in reading.steps() for each in step.forwards} == {(16,)}


def built_by_a_pass(kind: str) -> Reading:
    (reading,), ended = started(SCRIPTS / "built_by_a_pass.py", 32, WATCHING, kind)
    assert reading.is_done, ended.last_output
    return reading


def test_a_pass_in_a_constructor_begins_nothing_and_a_shadow_of_the_weights_in_a_list_counts() -> None:
    own, shadow = (built_by_a_pass(kind).memory() for kind in ("own", "shadow"))
    weights_bytes = 4 * (256 * 256 + 256 + 256 + 1)
    assert own is not None
    assert own.peak_bytes < 8_000_000  # the data set has twice as many
    assert shadow is not None
    assert shadow.peak_bytes - own.peak_bytes == weights_bytes


def test_images_in_a_list_are_counted_by_the_rows_of_the_scripts_own_sampler() -> None:
    evidence = judged([built_by_a_pass("grouped")], 32, limit_bytes=None)
    assert (evidence.probe.batch_size, evidence.micro_batches) == (32, 1)


def test_an_optimizer_that_is_made_before_the_shapes_are_known_is_watched() -> None:
    (reading,), ended = started(SCRIPTS / "lazy.py", 32, WATCHING)
    assert reading.is_done, ended.last_output
    assert reading.memory() is not None


@pytest.mark.parametrize("way", ["exit", "kill", "abort", "thread"])
def test_a_training_that_ends_without_exit_handlers_leaves_what_was_read_of_it(way: str) -> None:
    readings, ended = started(SCRIPTS / "ends.py", 32, Watching(5, timed_steps=10), way)
    evidence = judged(readings, 32, ended=ended, limit_bytes=None)
    assert (len(readings), evidence.probe.fits) == (1, True)


def read(name: str, size: int, *arguments: str, faster: dict[str, Any] | None = None) -> Reading:
    readings, _ = started(SCRIPTS / name, size, Watching(5, timed_steps=2, faster=faster), *arguments)
    (reading,) = [each for each in readings if each.has_trained]
    return reading


def detected(size: int, *arguments: str, honoured: frozenset[int] = frozenset()) -> Evidence:
    return judged([read("detector.py", size, *arguments)], size, limit_bytes=None, honoured=honoured)


def test_a_list_of_described_images_is_a_batch_of_as_many() -> None:
    found = detected(5, "described")
    assert (found.probe.outcome, found.batch_axis, found.micro_batches) == (Outcome.FITS, 0, 1)
    with pytest.raises(CommandUntunable, match="was given 5"):
        judged([read("detector.py", 5, "described")], 7, limit_bytes=None)


def test_boxes_that_come_before_the_images_hide_no_batch_nor_its_short_last_one() -> None:
    assert detected(20, "boxes").probe.outcome is Outcome.FITS
    beyond = detected(64, "boxes", honoured=frozenset({20}))
    assert (beyond.probe.outcome, beyond.most_samples) == (Outcome.SIZE_LIMIT, 50)


def test_the_adapters_of_a_model_in_evaluation_mode_are_no_models_of_their_own() -> None:
    faster = {"seed": 0, "set": {"bf16": True}, "is_trial": True, "environment": {"PYTHONHASHSEED": "0"}}
    found = read("adapters.py", 16, faster=faster).data["faster"]
    assert (found["models"], found["applied"]) == ([], [])
