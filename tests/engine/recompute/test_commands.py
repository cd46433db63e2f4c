"""Documents of tuned commands: starts in place of probes, and pairs of starts in place of rounds."""

from __future__ import annotations

import copy
import json
from functools import partial
from itertools import count, cycle
from typing import Any

import pytest

from engine.errors import SpecError, TimeIsUp
from engine.kinds import find_contradictions
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from engine.tune.speed import in_turns
from engine.tune.start.launch import Watching
from tests.engine.quiet_machine import leave_the_machine_alone
from tests.engine.tune.test_evidence import marks_of, reading, steps
from tests.engine.tune.test_run import bending_start


def made_up_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
    """A training whose steps take a second whatever their size, and 100 bytes a sample."""
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=10.0)


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_machine_alone(monkeypatch)


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A run of the settings that the test names; its starts did not take their seconds."""
    monkeypatch.setattr(run, "start", made_up_start)
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
    assert find_contradictions(document) == []


@pytest.mark.parametrize("document", [COMPARED], indirect=True)
def test_its_speed_up_is_that_of_its_pairs(document: dict[str, Any]) -> None:
    assert document["speedup"] == pytest.approx(38 / 16)
    assert [round(r["seconds"]) for r in document["speed_rounds"]] == [20] * 6
    assert fields({**document, "speedup": 3.0}) == {"speedup"}
    for path, field in (
        (("training", "throughputs", 0, "samples_per_second"), "training.throughputs[0].samples_per_second"),
        (("training", "rank_peaks_bytes", 0), "training.rank_peaks_bytes"),
        (("training", "starts", 0, 0), "training.starts[0]"),
        (("speed_rounds", 1, "blocks", 0, "step_seconds"), "speed_rounds[1].blocks[0].step_seconds"),
        (("probes", -1, "samples_per_second"), f"probes[{len(document['probes']) - 1}].samples_per_second"),
    ):
        assert field in fields(doubled(document, *path))
    assert "speed.is_measurable" in fields({**document, "speed_rounds": document["speed_rounds"][:5]})


@pytest.fixture
def of_four_sizes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(run, "start", partial(bending_start, wall_seconds=10.0))
    return made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))


def test_the_sizes_of_each_round_and_their_order_are_those_that_the_starts_call_for(of_four_sizes) -> None:
    assert find_contradictions(of_four_sizes) == []
    assert of_four_sizes["recommended"]["batch_size"] == 4096
    for number in range(len(of_four_sizes["speed_rounds"])):
        reversed_order = copy.deepcopy(of_four_sizes)
        reversed_order["speed_rounds"][number]["blocks"].reverse()
        assert f"speed_rounds[{number}]" in fields(reversed_order)
    without_choice = {**of_four_sizes, "speed_rounds": of_four_sizes["speed_rounds"][2:]}
    assert any(name.startswith("speed_rounds[0]") for name in fields(without_choice))


def test_a_sender_cannot_choose_which_sizes_are_compared(of_four_sizes) -> None:
    """The rounds of the largest size alone would recommend it: 19,000, at more than four times the memory."""
    chosen = copy.deepcopy(of_four_sizes)
    for each in chosen["speed_rounds"]:
        each["blocks"] = [block for block in each["blocks"] if block["batch_size"] in (16, 19_000)]
    chosen["speed_rounds"] = [each for each in chosen["speed_rounds"] if each["blocks"]]
    assert "speed_rounds[0]" in fields(chosen)


def test_a_member_that_repeats_the_rounds_is_not_believed(of_four_sizes) -> None:
    """Pages printed `training.turns`, of which only a part was compared with the rounds."""
    of_four_sizes["training"]["turns"] = {"batch_sizes": [1, 999_999], "pairs": [], "ratio": None}
    with pytest.raises(SpecError, match="is unknown"):
        find_contradictions(of_four_sizes)


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

    monkeypatch.setattr(run, "start", start_until_the_time_is_up)
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))
    assert find_contradictions(document) == []


def test_starts_beside_other_work_on_a_cpu_claim_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer was told "at least 10x" beside a test suite; left alone it was 5.7x."""
    monkeypatch.setattr(run, "start", partial(bending_start, wall_seconds=10.0))
    monkeypatch.setattr(in_turns.MachineWatch, "read", lambda _: {"others_cores": 64.0})
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))
    assert (document["speed"]["claim"], document["recommended"]) == ("nothing", None)
    assert find_contradictions(document) == []


def test_fewer_than_six_pairs_recommend_nothing(of_four_sizes) -> None:
    early = {**of_four_sizes, "speed_rounds": of_four_sizes["speed_rounds"][:5]}
    assert {"recommended", "speed.is_measurable"} <= fields(early)


def test_pairs_without_a_verdict_are_those_of_the_step_times_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = cycle((1.0, 3.0, 0.2, 2.0, 0.5))

    def wild_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        marks = marks_of(steps(batch_size), step_seconds=next(seconds))
        return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7", marks=marks)], Ended(
            wall_seconds=20.0
        )

    monkeypatch.setattr(run, "start", wild_start)
    document = made(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, **COMPARED))
    assert (document["speed"]["is_measurable"], len(document["speed_rounds"])) == (False, 12)
    assert find_contradictions(document) == []
    number = len(document["probes"]) - 1
    assert f"probes[{number}].samples_per_second" in fields(doubled(document, "probes", number, "samples_per_second"))


def doubled(document: dict[str, Any], *path: Any) -> dict[str, Any]:
    copied = copy.deepcopy(document)
    part: Any = copied
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] *= 2
    return copied


def fields(document: dict[str, Any]) -> set[str]:
    return {each.field for each in find_contradictions(document)}
