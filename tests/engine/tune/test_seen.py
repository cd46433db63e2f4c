"""A start that makes no step says what is seen of it, while it runs and where it ends without an answer."""

import os
import sys
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.errors import WorkloadFailed
from engine.execution import Execution
from engine.tune import run, seen
from engine.tune.evidence import Ended
from engine.tune.hook import memorymark_seen
from engine.tune.seen import (
    AGAIN_SECONDS,
    LEAST_SECONDS,
    UNSEEN_SECONDS,
    LastSeen,
    Seen,
    describe,
    describe_so_far,
    is_another_about_to_train,
    is_due,
    read_seen,
    trained_side_by_side,
)
from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.launch import Watching, start

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

    monkeypatch.setattr("engine.tune.speed.seats.start", never_steps)
    with pytest.raises(WorkloadFailed, match=f"before the training had made a step; seen last: {text}"):
        run.tune(TuneSpec(("python", "train.py", "{batch_size}")), events.append)
    messages = [event["message"] for event in events if event["event"] == "log"]
    assert messages[1:] == [f"batch 16: {text}", f"batch 16: the time budget ended; seen last: {text}"]
