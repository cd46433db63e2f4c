"""An error that is the script's own is a wall; a start that makes no step says what is seen of it."""

import os
import sys
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.errors import WorkloadFailed
from engine.facts.result import Outcome, Probe, Reason
from engine.machine.execution import Execution
from engine.machine.scratch import PREFIX
from engine.report.script_output import NO_INPUT, NO_MOVE, NO_TRACKER, OTHER_TORCHVISION
from engine.trainings.script import run
from engine.trainings.script.hook import memorymark_seen
from engine.trainings.script.notes import progress as seen
from engine.trainings.script.notes.file_changes import FileChanges, Way
from engine.trainings.script.notes.progress import (
    AGAIN_SECONDS,
    LEAST_SECONDS,
    UNSEEN_SECONDS,
    Ended,
    LastSeen,
    Seen,
    describe,
    describe_so_far,
    is_another_about_to_train,
    is_due,
    read_seen,
    trained_side_by_side,
)
from engine.trainings.script.result import TuneResult
from engine.trainings.script.sizes.learned_sizes import is_same_error, sizes_named
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.failure import describe_failure
from engine.trainings.script.start.launch import Watching, start
from tests.engine.trainings.script.starts import COMMAND, Noted, tuned
from tests.engine.trainings.script.test_evidence import reading, steps


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


NOW = 1_000.0
BEGAN = NOW - 38


def said(*processes: Seen) -> str:
    return describe(processes, BEGAN, NOW)


def test_what_is_said_names_how_far_the_training_came() -> None:
    ready = {"began": BEGAN, "imported": NOW - 12}
    fed = ready | {"batches": 4, "batch_size": 8, "optimizers": 1}
    assert said() == f"no Python process was seen yet (38 s): {seen.KEPT_OUT}"
    assert said(Seen(began=BEGAN)) == "no Python process has imported torch yet (38 s)"
    assert said(Seen(began=BEGAN, importing=NOW - 9)) == "torch is being imported, for 9 s so far"
    assert said(Seen(**ready)) == "torch was imported 12 s ago; no optimizer step yet; no model ran forward"
    assert said(Seen(**fed, forwards=3)) == (
        "torch was imported 12 s ago; no optimizer step yet; 3 forward passes in training mode; "
        "it draws batches of 8 from a DataLoader"
    )
    assert said(Seen(**ready, evaluations=1)) == (
        "torch was imported 12 s ago; no optimizer step yet; 1 forward pass, none in training mode with gradients"
    )
    assert said(Seen(**ready, forwards=9)).endswith(
        "9 forward passes in training mode; no optimizer of torch.optim was made"
    )
    assert "; 2 optimizer steps, the last 7 s ago; 3 forward passes" in said(
        Seen(**fed, forwards=3, steps=2, stepped=NOW - 7)
    )


def test_of_several_processes_the_one_that_trains_is_spoken_of() -> None:
    launcher, worker = Seen(began=BEGAN, imported=NOW - 30), Seen(began=NOW - 2)
    assert "1 forward pass in" in said(launcher, worker, Seen(began=NOW - 20, imported=NOW - 18, forwards=1))


def test_a_process_that_has_ended_does_not_hide_the_one_that_runs() -> None:
    prepared = Seen(began=BEGAN, imported=NOW - 30, evaluations=5, ended=NOW - 20)
    assert said(prepared, Seen(began=NOW - 20)) == "no running Python process has imported torch yet (38 s)"
    assert said(prepared).endswith("that process has ended")


def test_a_start_is_loading_for_a_minute_unless_its_model_runs() -> None:
    ready = Seen(began=BEGAN, imported=NOW - 12)
    assert describe_so_far([ready], BEGAN, NOW) == "loading (38 s)"
    assert describe_so_far([ready], NOW - 60, NOW) == describe([ready], NOW - 60, NOW)
    running = Seen(began=BEGAN, imported=NOW - 12, forwards=1)
    assert describe_so_far([running], BEGAN, NOW) == said(running)
    assert describe_so_far([], BEGAN, NOW) == said()


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([{"forwards": 1}], True),
        ([{"optimizers": 1}], True),
        ([{"optimizers": 1, "ended": NOW}], False),
        ([{}], False),
        ([{"batches": 3, "evaluations": 2}], False),
        ([{"optimizers": 1}, {"optimizers": 1, "steps": 1}], False),
    ],
    ids=str,
)
def test_a_launcher_and_a_worker_are_not_waited_for_and_a_training_only_until_its_first_step(
    facts: list[dict[str, float]], expected: bool, tmp_path: Path
) -> None:
    for number, each in enumerate(facts):
        values = [({"began": BEGAN, "imported": BEGAN} | each).get(fact, 0.0) for fact in memorymark_seen.FACTS]
        (tmp_path / f"{number}{memorymark_seen.SUFFIX}").write_bytes(array("d", values).tobytes())
    assert is_another_about_to_train(tmp_path) is expected


def test_a_training_that_ended_before_another_began_was_not_next_to_it() -> None:
    first, second = Seen(began=1, steps=9, stepped=5, ended=6), Seen(began=2, steps=9, stepped=7, ended=8)
    launcher, later = Seen(began=1, imported=2), Seen(began=7, steps=1, stepped=9)
    assert trained_side_by_side([launcher]) == 0
    assert trained_side_by_side([launcher, first]) == 1
    assert trained_side_by_side([launcher, first, second]) == 2
    assert trained_side_by_side([first, later]) == 1


def test_a_fork_that_counts_has_a_file_of_its_own(tmp_path: Path) -> None:
    own = memorymark_seen.Seen(str(tmp_path))
    own.now("imported")
    own.count("forwards")
    if (pid := os.fork()) == 0:
        own.count("steps")
        os._exit(0)
    os.waitpid(pid, 0)
    forked, parent = sorted(read_seen(tmp_path), key=lambda each: -each.began)
    assert (parent.forwards, parent.steps, forked.forwards, forked.steps) == (1, 0, 0, 1)
    assert forked.imported == parent.imported


@pytest.mark.parametrize(
    ("imports_after", "expected"),
    [(None, UNSEEN_SECONDS), (1.0, LEAST_SECONDS), (15.0, 30.0)],
)
def test_it_is_said_after_twice_the_time_to_the_import_and_then_ever_more_rarely(
    imports_after: float | None, expected: float
) -> None:
    processes = [Seen(began=0.1, imported=imports_after or 0.0)]
    times, said_at = [], float("-inf")
    for now in range(400):
        if is_due(processes, 0.0, said_at, float(now)):
            times.append(now)
            said_at = float(now)
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert times[0] == expected
    assert gaps == sorted(gaps)
    assert gaps[-1] == AGAIN_SECONDS


def test_nothing_is_said_while_steps_follow_each_other() -> None:
    assert not is_due([Seen(began=0.1, imported=5.0, steps=9, stepped=295.0)], 0.0, float("-inf"), 300.0)
    assert is_due([Seen(began=0.1, imported=5.0, steps=9, stepped=285.0)], 0.0, float("-inf"), 300.0)


def test_a_start_says_it_while_it_runs_and_when_its_time_is_over(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(seen, "LEAST_SECONDS", 0.1)
    monkeypatch.setattr(seen, "UNSEEN_SECONDS", 0.1)
    (tmp_path / "waits.py").write_text("import time; time.sleep(600)  # a download that does not come")
    spec = TuneSpec((sys.executable, str(tmp_path / "waits.py"), "{batch_size}"), device="cpu")
    news: list[str] = []
    readings, ended = start(
        partial(begin_command, spec),
        8,
        Watching(5),
        seconds=3,
        on_tick=lambda each: news.append(each) if each else None,
    )
    assert not readings
    assert news[-1].startswith("loading (")
    assert ended.seen == LastSeen(1, has_torch=False, text=ended.seen.text)
    assert "; seen last: no Python process has imported torch yet" in ended.last_words


def test_a_budget_that_ends_before_any_step_names_what_was_seen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "torch was imported 12 s ago; no optimizer step yet; no model ran forward"
    ended = Ended(timed_out_after_seconds=30.0, seen=LastSeen(1, has_torch=True, text=text))
    events: list[dict[str, Any]] = []

    def never_steps(*_: object, on_tick: Any, **__: object) -> tuple[list[Any], Ended]:
        on_tick(text)
        monkeypatch.setattr(Execution, "seconds_left", property(lambda _: 0.0))
        return [], ended

    monkeypatch.setattr("engine.trainings.script.speed.seats.start", never_steps)
    with pytest.raises(WorkloadFailed, match=f"before the training had made a step; seen last: {text}"):
        run.tune(TuneSpec(("python", "train.py", "{batch_size}")), events.append)
    messages = [event["message"] for event in events if event["event"] == "log"]
    assert messages[1:] == [f"batch 16: {text}", f"batch 16: the time budget ended; seen last: {text}"]
