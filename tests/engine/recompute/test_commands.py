"""Documents of tuned commands: starts in place of probes, and pairs of starts in place of rounds."""

from __future__ import annotations

import copy
import json
from itertools import cycle
from typing import Any

import pytest

from engine.recompute import find_contradictions
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from tests.engine.tune.test_evidence import marks_of, reading, steps


def made_up_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
    """A training whose steps take a second whatever their size, and 100 bytes a sample."""
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=10.0)


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


COMPARED = {"compare_speed": True, "start_batch_size": 32}
SETTINGS = [
    {},
    COMPARED,
    {"compare_speed": True, "current_batch_size": 38},
    {"compare_speed": True, "current_batch_size": 48},
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
        (("training", "turns", "pairs", 0, 1), "training.turns.pairs"),
        (("training", "throughputs", 0, "samples_per_second"), "training.throughputs[0].samples_per_second"),
        (("training", "rank_peaks_bytes", 0), "training.rank_peaks_bytes"),
        (("training", "starts", 0, 0), "training.starts[0]"),
        (("speed_rounds", 1, "blocks", 0, "step_seconds"), "speed_rounds[1].blocks[0].step_seconds"),
        (("probes", -1, "samples_per_second"), f"probes[{len(document['probes']) - 1}].samples_per_second"),
    ):
        assert field in fields(doubled(document, *path))
    assert "speed.is_measurable" in fields({**document, "speed_rounds": document["speed_rounds"][:5]})


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
    assert fields(doubled(document, "training", "turns", "pairs", 3, 0)) == {"training.turns.pairs"}


def doubled(document: dict[str, Any], *path: Any) -> dict[str, Any]:
    copied = copy.deepcopy(document)
    part: Any = copied
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] *= 2
    return copied


def fields(document: dict[str, Any]) -> set[str]:
    return {each.field for each in find_contradictions(document)}
