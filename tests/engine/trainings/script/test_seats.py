"""Starts of a search wait for their turns, and those that cannot are started anew."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.facts.result import Purpose
from engine.trainings.script.faster.run import make_faster
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec
from engine.trainings.script.judge.batch_size import ONE_ROW
from engine.trainings.script.judge.evidence import WatchedStart
from engine.trainings.script.judge.timed_steps import computing_fraction, timed_pairs
from engine.trainings.script.notes.file_changes import WrittenFiles
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.speed import seats as seats_module
from engine.trainings.script.speed.seats import Seats
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Started, Watching
from tests.engine.questions.answers.answers import differing
from tests.engine.trainings.script.test_evidence import MEMORY_STEPS, reading, steps

SIZES = (16, 38, 40)
FIVE_BATCHES = """
import torch
data = torch.utils.data.TensorDataset(torch.ones(50, 8))
loader = torch.utils.data.DataLoader(data, batch_size=10, shuffle=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters())
for (inputs,) in loader:
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
"""


@dataclass
class Held:
    """A start that waits for its turn, and trains until its data ends."""

    size: int
    turns: int
    has_ended: bool = False

    def go_on(self, _: int) -> None:
        self.turns -= 1

    def watch(self, *_: Any) -> list[Reading]:
        return [reading(steps(self.size), python="3.11.7")] if self.is_waiting() else []

    def is_waiting(self) -> bool:
        return self.turns >= 0

    def end(self) -> tuple[list[Reading], Ended]:
        self.has_ended = True
        return [], Ended()


@dataclass
class Machine:
    """Starts trainings of which so many may run at once; the sweep that they are of."""

    most: int = 9
    turns: int = 99
    kind: str = "cpu"
    made: list[Held] = field(default_factory=list)

    def start(self, _: object, size: int, watching: Watching, *, hold: Callable[..., bool], **__: Any) -> Any:
        if sum(not each.has_ended for each in self.made) >= self.most:
            return [reading([], ended="error", error_type="RuntimeError", python="3.11.7")], Ended(exit_status=1)
        self.made.append(Held(size, self.turns, has_ended=not watching.seat))
        noted = [reading(steps(size), peak=size, python="3.11.7")]
        if self.kind != "cpu":
            noted[0].data["card"] = {"peak_allocated_bytes": size}
        if watching.seat and not hold(self.made[-1], noted):
            self.made[-1].has_ended = True
        return noted, Ended(wall_seconds=10.0)

    def judged(self, readings: list[Reading], ended: Ended, size: int) -> Any:
        return WatchedStart(readings, ended, size, limit_bytes=None, batch="template", honoured=()).evidence()

    @property
    def sizes_started(self) -> list[int]:
        return [each.size for each in self.made]


@pytest.fixture
def seats_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Machine], Seats]:
    def seats(machine: Machine) -> Seats:
        monkeypatch.setattr(seats_module, "start", machine.start)
        known = {size: machine.judged([reading(steps(size))], Ended(wall_seconds=10.0), size) for size in SIZES}
        sweep: Any = SimpleNamespace(
            begin=None,
            spec=TuneSpec(("python", "train.py", "{batch_size}"), device="cpu"),
            execution=SimpleNamespace(check_deadline=lambda: None),
            files=WrittenFiles("/", lambda *_: None),
            unit=ONE_ROW,
            evidence=known,
            seen_device=SimpleNamespace(kind=machine.kind, limit_bytes=1 << 20, capacity_bytes=1 << 30),
            judged=machine.judged,
            seconds_of_a_start=lambda _: 60.0,
            say_alive=lambda *_: None,
        )
        return Seats(sweep)

    return seats


def search(seats: Seats, *sizes: int, purpose: Purpose = Purpose.SEARCH) -> None:
    for size in sizes:
        seats.start(size, Watching(5), purpose)


def test_a_size_that_was_searched_is_timed_in_its_own_start(seats_of: Callable[[Machine], Seats]) -> None:
    machine = Machine()
    with seats_of(machine) as seats:
        search(seats, 16, 38)
        timed = [seats.time(size) for size in (16, 38, 38, 16)]
    assert [block.batch_size for block in timed] == [16, 38, 38, 16]
    assert (machine.sizes_started, seats.timed_starts) == ([16, 38], [])
    assert all(block.was_held for block in timed)
    assert all(each.has_ended for each in machine.made)


def test_a_start_whose_data_ends_in_its_turn_is_made_anew_for_that_block(
    seats_of: Callable[[Machine], Seats],
) -> None:
    machine = Machine(turns=1)
    with seats_of(machine) as seats:
        search(seats, 16)
        assert [seats.time(16).batch_size for _ in range(3)] == [16] * 3
    assert machine.sizes_started == [16, 16]
    assert len(seats.timed_starts) == 1


def test_the_search_of_a_card_holds_nothing_of_it(seats_of: Callable[[Machine], Seats]) -> None:
    machine = Machine(kind="cuda")
    with seats_of(machine) as seats:
        search(seats, 16, 38)
        assert not seats.held
        search(seats, 40, purpose=Purpose.CURVE)
        assert [*seats.held] == [40]


def test_a_start_on_a_cpu_that_read_many_steps_makes_way_for_one_whose_heap_is_as_alone(
    seats_of: Callable[[Machine], Seats], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats_module, "MOST_STEPS_READ", MEMORY_STEPS - 1)
    machine = Machine()
    with seats_of(machine) as seats:
        search(seats, 16, 38)
        assert not seats.held
        assert [seats.time(size).batch_size for size in (16, 38, 16)] == [16, 38, 16]
    assert machine.sizes_started == [16, 38, 16, 38]


def test_where_a_start_fails_beside_others_it_is_made_alone_and_none_is_held_from_then_on(
    seats_of: Callable[[Machine], Seats],
) -> None:
    machine = Machine(most=1)
    with seats_of(machine) as seats:
        search(seats, 16, 38)
        assert (seats.held, seats.may_hold) == ({}, False)
        timed = [seats.time(size).batch_size for size in (16, 38)]
    assert (timed, machine.sizes_started) == ([16, 38], [16, 38, 16, 38])


def test_a_size_that_is_searched_again_leaves_no_start_behind(seats_of: Callable[[Machine], Seats]) -> None:
    machine = Machine()
    with seats_of(machine) as seats:
        search(seats, 16, 16)
        assert [each.has_ended for each in machine.made] == [True, False]
        seats.release(16)
    assert all(each.has_ended for each in machine.made)


@pytest.mark.slow
def test_a_held_training_makes_the_steps_of_each_turn_and_its_loader_begins_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FIVE_BATCHES)
    spec = TuneSpec((sys.executable, str(tmp_path / "train.py"), "{batch_size}"), device="cpu")
    sleeping = partial(begin_command, spec, variables_of_run={"OMP_WAIT_POLICY": "passive"})
    start = Started(sleeping, 10, Watching(3, timed_steps=1, seat=True))
    try:
        start.watch(120.0, lambda _: None)
        assert start.is_waiting()
        for wanted in (2, 9):
            start.go_on(wanted)
            (noted,) = start.watch(120.0, lambda _: None)
            timed = [step for step in noted.steps() if step.is_timed]
            assert (len(timed), all(10 in step.seen() for step in timed)) == (wanted, True)
            assert len(timed_pairs(noted.steps())) >= wanted - 2, "a step behind a pass's end is left out"
            assert 0 < (computing_fraction([noted]) or 0) <= 1
            noted.data["loader"] = (2, 4)
            assert computing_fraction([noted]) is None, "it waits for its loader's workers"
    finally:
        _, ended = start.end()
    assert ended.exit_status is None  # it did not end by itself


@pytest.mark.slow
def test_a_race_times_further_blocks_of_a_change_in_the_start_that_it_has() -> None:
    script = Path(__file__).parent / "scripts" / "ten_lines.py"
    spec = OwnRaceSpec((sys.executable, str(script), "16"), batch=OWN, device="cpu", tried=("fused",))
    result = make_faster(spec)
    timed = [each for race in result.rounds for each in race.timed]
    assert sum(each.was_held for each in timed) >= 2
    assert result.starts < 3 + len(timed), "two of today's training, one of the change, and those that were timed"
    assert differing(result.to_dict()) == []
