"""An error that is the script's own is a wall: closed in on by what it names, and not started twice at each size."""

from pathlib import Path
from typing import Any

import pytest

from engine.machine.scratch import PREFIX
from engine.report.script_output import NO_INPUT, NO_MOVE, NO_TRACKER, OTHER_TORCHVISION
from engine.results.result import Outcome, Probe, Reason
from engine.tune.evidence import Ended
from engine.tune.failure import describe_failure
from engine.tune.file_changes import FileChanges, Way
from engine.tune.script_error import is_same_error, sizes_named
from engine.tune.spec import TuneSpec
from engine.tune.training import TuneResult
from tests.engine.tune.starts import COMMAND, Noted, tuned
from tests.engine.tune.test_evidence import reading, steps


def starts_of(breaks_above: int, message: str) -> tuple[list[int], TuneResult]:
    """The sizes that were started of a training that ends with this error above a size, whatever memory is left."""

    def start(batch_size: int) -> Noted:
        changes: dict[str, Any] = {"python": "3.11.7", "peak": 1000 + batch_size}
        if batch_size > breaks_above:
            changes |= {"ended": "error", "error_type": "RuntimeError", "error_message": message.format(batch_size)}
        made = reading(steps(batch_size), **changes)
        return [made], Ended(exit_status=1 if batch_size > breaks_above else None, wall_seconds=1.0)

    return tuned(start, memory_limit_bytes=10_000)


def test_a_reshape_to_more_rows_than_there_are_names_the_size_where_it_breaks() -> None:
    message = "shape '[{}, 1, 28, 28]' is invalid for input of size 784000"
    started, found = starts_of(1000, message)
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.reason, boundary.certified) == (1000, Reason.ERROR, False)
    assert started[-2:] == [1000, 1001]
    assert len(started) <= 6


def test_an_error_at_every_larger_size_is_closed_in_on_and_not_started_again() -> None:
    started, found = starts_of(1000, "batch {} is too large for this script")
    failed = [size for size in started if size > 1000]
    assert len(failed) == len(set(failed)) + 1, "only the first is started a second time"
    boundary = found.result.boundary
    assert boundary.largest_batch_size <= 1000 < boundary.refused_batch_size <= 1.1 * boundary.largest_batch_size
    assert (boundary.reason, boundary.certified) == (Reason.ERROR, False)
    assert len(started) <= 10


def test_an_error_that_names_a_file_in_the_folder_of_its_start_is_the_same_error() -> None:
    found = [
        Probe(
            size,
            Outcome.ERROR,
            error_type="OSError",
            error_message=f"no such file: '/tmp/{PREFIX}{name}/out/log-{size}'",
        )
        for size, name in ((24, "a1b_"), (28, "zz9x"))
    ]
    assert is_same_error(*found)


def test_an_error_of_another_kind_is_started_again() -> None:
    messages = iter(f"{name} {{}}" for name in ("one", "two", "three", "four", "five", "six", *"abcdefghijklmnopqrst"))

    class Another(str):
        def format(self, *numbers: object) -> str:
            return next(messages).format(*numbers)

    started, _ = starts_of(1000, Another())
    failed = [size for size in started if size > 1000]
    assert len(failed) == 2 * len(set(failed))


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("shape '[1008, 1, 28, 28]' is invalid for input of size 784000", 1000),
        ("Expected input batch_size (64) to match target batch_size (50).", 50),
        ("at most 128 samples.", 128),
        (
            "stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at entry 7",
            7,
        ),
    ],
)
def test_sizes_are_read_from_an_error(message: str, size: int) -> None:
    assert size in sizes_named(message)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("RuntimeError: operator torchvision::nms does not exist", OTHER_TORCHVISION),
        ("EOFError: EOF when reading a line", NO_INPUT),
        ('    folder = run.use_artifact("data:latest").download()', NO_TRACKER),
    ],
)
def test_a_failure_that_looks_like_the_scripts_own_is_told_its_cause(line: str, cause: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{line}\n" + "\nThe above exception ...\n" * 99)
    spec = TuneSpec(COMMAND)
    assert describe_failure(spec, 8, Ended(log=log)).startswith(cause)
    log.write_text("ModuleNotFoundError: No module named 'data'\n")
    assert cause not in describe_failure(spec, 8, Ended(log=log))
    assert cause not in describe_failure(spec, 8, Ended(log=tmp_path / "removed"))


@pytest.mark.parametrize(
    ("way", "user", "is_named"), [(Way.LAYERS, 1000, True), (Way.LAYERS, 0, False), (Way.SAVING, 1000, False)]
)
def test_layers_are_named_as_the_cause_only_where_they_can_be(
    way: Way, user: int, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    (tmp_path / "log").write_text("OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'\n")
    ended = Ended(log=tmp_path / "log", changes=FileChanges(protection=way))
    said = describe_failure(TuneSpec(COMMAND), 8, ended)
    assert said.startswith(NO_MOVE) is is_named
