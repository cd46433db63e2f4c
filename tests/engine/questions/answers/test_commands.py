"""Documents of tuned commands: starts in place of probes, and pairs of starts in place of rounds."""

import copy
import json
from functools import partial
from itertools import count, cycle
from typing import Any

import pytest

from engine.errors import TimeIsUp
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.kinds import answered
from engine.trainings.script import run
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.speed import seats
from engine.trainings.script.start.launch import Watching
from tests.engine.questions.answers.answers import differing
from tests.engine.quiet_machine import leave_the_machine_alone
from tests.engine.trainings.script.test_evidence import marks_of, reading, steps
from tests.engine.trainings.script.test_run import bending_start


def made_up_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
    """A training whose steps take a second whatever their size, and 100 bytes a sample."""
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=10.0)


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_machine_alone(monkeypatch)


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A run of the settings that the test names; its starts did not take their seconds."""
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", made_up_start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, **request.param)
    return made(spec)


def made(spec: TuneSpec) -> dict[str, Any]:
    document = json.loads(json.dumps(run.tune(spec).to_dict()))
    document["timings"]["total_seconds"] += 1_000.0
    return dict(document)


COMPARED = {"start_batch_size": 32}
SETTINGS = [
    {"compare_speed": False},
    {},
    COMPARED,
    {"current_batch_size": 38},
    {"current_batch_size": 48},
    {"current_batch_size": 48, "start_batch_size": 10},
    {"max_batch_size": 20},
    {"current_batch_size": 300},
]


@pytest.mark.parametrize("document", SETTINGS, indirect=True)
def test_a_tuned_command_claims_what_its_starts_show(document: dict[str, Any]) -> None:
    assert differing(document) == []


@pytest.mark.parametrize("document", [COMPARED], indirect=True)
def test_its_speed_up_is_that_of_its_pairs(document: dict[str, Any]) -> None:
    assert document["speedup"] == pytest.approx(38 / 16)
    assert [round(r["seconds"]) for r in document["speed_rounds"]] == [20] * 6
    few = answered({**document, "speed_rounds": document["speed_rounds"][:5]})
    assert (few["speed"]["is_measurable"], few["speedup"]) == (False, None)


@pytest.mark.parametrize("document", [COMPARED], indirect=True)
def test_the_speeds_of_starts_are_those_of_their_steps(document: dict[str, Any]) -> None:
    forged = doubled(document, "probes", -1, "samples_per_second")
    forged["speed_rounds"][1]["blocks"][0]["step_seconds"] *= 2
    assert answered(forged) == answered(document)
    with pytest.raises(ImpossibleFiguresError, match="throughputs"):
        answered(doubled(document, "training", "throughputs", 0, "samples_per_second"))


@pytest.fixture
def of_four_sizes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", partial(bending_start, wall_seconds=10.0))
    return made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))


def test_rounds_of_sizes_that_the_run_did_not_train_are_impossible(of_four_sizes) -> None:
    assert differing(of_four_sizes) == []
    assert of_four_sizes["recommended"]["batch_size"] == 4096
    for each in of_four_sizes["speed_rounds"]:
        each["blocks"][0]["batch_size"] = 999_999
    with pytest.raises(ImpossibleFiguresError, match="speed_rounds"):
        answered(of_four_sizes)


@pytest.mark.parametrize("starts", range(1, 20, 3))
def test_a_comparison_that_the_time_ended_is_believed(starts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it ended early is known to the sender alone; what was compared until then is decided again."""
    timed = count()

    def start_until_the_time_is_up(
        _: object, batch_size: int, watching: Watching, **__: object
    ) -> tuple[list[Reading], Ended]:
        if watching.memory_steps == run.LEAST_STEPS and next(timed) >= starts:
            raise TimeIsUp
        return bending_start(_, batch_size, wall_seconds=10.0)

    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start_until_the_time_is_up)
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))
    assert differing(document) == []


def test_starts_beside_other_work_on_a_cpu_claim_the_order_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer was told "at least 10x" beside a test suite; left alone it was 5.7x."""
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", partial(bending_start, wall_seconds=10.0))
    monkeypatch.setattr(seats.MachineWatch, "read", lambda _: {"others_cores": 64.0})
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))
    assert (document["speed"]["claim"], document["recommended"]["batch_size"]) == ("ahead", 4096)
    assert (document["speedup"], document["speedup_low"]) == (None, None)
    assert differing(document) == []


def test_pairs_without_a_verdict_are_those_of_the_step_times_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = cycle((1.0, 3.0, 0.2, 2.0, 0.5))

    def wild_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        marks = marks_of(steps(batch_size), step_seconds=next(seconds))
        return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7", marks=marks)], Ended(
            wall_seconds=20.0
        )

    monkeypatch.setattr("engine.trainings.script.speed.seats.start", wild_start)
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, **COMPARED))
    assert (document["speed"]["is_measurable"], len(document["speed_rounds"]) > 6) == (False, True)
    assert differing(document) == []
    assert answered(doubled(document, "probes", -1, "samples_per_second")) == answered(document)


def doubled(document: dict[str, Any], *path: Any) -> dict[str, Any]:
    copied = copy.deepcopy(document)
    part: Any = copied
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] *= 2
    return copied
