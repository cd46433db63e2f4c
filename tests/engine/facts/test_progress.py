"""Progress is said at most once a second, between steps, and is a fold over the events of any sender."""

import json
from typing import Any

import pytest
import torch

from engine.describe.time_left.live_progress import LONGEST_SECONDS, progress_after, seconds_of
from engine.facts.progress import Paced
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, run_probe
from engine.measurement.workloads import build
from engine.questions.size import measure
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from tests.engine.fake_worker import FakeWorker


def paced(times):
    told, clock = [], iter(times)
    progress = Paced(lambda *said: told.append(said), clock=lambda: next(clock))
    for step in range(1, len(times)):
        progress("memory", step)
    return [step for _, step in told]


def test_a_step_is_told_when_a_second_has_passed_since_the_last_one_told():
    assert paced([0.0, 0.0, 0.9, 1.0, 1.5, 1.99, 2.0, 9.0, 9.5, 10.0]) == [3, 6, 7, 9]


def test_a_probe_shorter_than_a_second_says_nothing():
    assert paced([5.0, 5.1, 5.2, 5.9]) == []


@pytest.mark.slow
def test_a_probe_tells_its_stages_in_order_and_the_kinds_only_where_a_step_of_their_own_finds_them():
    spec = RunSpec("bert-tiny", device="cpu", sequence_length=8)
    device = Cpu(torch.device("cpu"))
    device.limit_bytes = 200 * MIB
    bench = Bench(spec, device, build(spec, device.torch_device))
    told: list[tuple[str, int]] = []
    probe = run_probe(bench, 2, steps=4, progress=lambda *said: told.append(said))
    assert probe.memory_by_kind is not None
    assert told == [("memory", k) for k in (1, 2, 3, 4)]


def test_progress_is_told_with_the_probe_it_belongs_to():
    events: list[dict] = []
    measure(RunSpec("bert-tiny"), events.append, worker=FakeWorker(20), estimates=False)
    after = [events[i + 1] for i, event in enumerate(events) if event["event"] == "probe_started"]
    assert {event["event"] for event in after} == {"progress"}
    assert json.loads(json.dumps(after[0] | {"seconds": 0.5})) == {
        "event": "progress", "seconds": 0.5, "batch_size": 1, "purpose": "search", "stage": "memory", "step": 3,
    }  # fmt: skip


def progress_of(*events: dict[str, Any]) -> dict[str, Any]:
    progress: dict[str, Any] = {}
    for seconds, event in enumerate(events):
        progress = progress_after(progress, {"seconds": float(seconds), **event})
    return progress


def phase(name: str, **content: Any) -> dict[str, Any]:
    return {"event": "phase", "phase": name, **content}


def test_the_progress_says_what_goes_on_and_when_each_phase_began() -> None:
    stage = {"event": "stage", "stage": "importing torch and transformers"}
    assert progress_of(phase("estimating"), stage) == {
        "phase": "estimating",
        "phases": {"estimating": 0.0},
        "since": 0.0,
        "stage": "importing torch and transformers",
        "stage_since": 1.0,
    }
    begun = {"phase": "searching", "phases": {"estimating": 0.0, "searching": 2.0}}
    searching = (phase("estimating"), stage, phase("searching"))
    assert progress_of(*searching) == {**begun, "since": 2.0}
    probing = ({"event": "probe_started", "batch_size": 16}, {"event": "progress", "batch_size": 16, "step": 2})
    assert progress_of(*searching, *probing) == {**begun, "since": 3.0, "batch_size": 16, "step": 2}


def test_while_speeds_are_compared_the_round_stands_and_not_the_steps_of_its_blocks() -> None:
    timing = {"event": "timing", "round": 4, "rounds_expected": 9, "seconds_left": 41.0, "seconds_left_at_most": 90.0}
    step = {"event": "progress", "purpose": "timing", "batch_size": 60, "step": 9}
    known = {"round": 4, "rounds_expected": 9, "timing_seconds_left": 41.0, "since": 0.0}
    assert progress_of(timing, step) == known
    stage = {"event": "stage", "stage": "building the model in a new process"}
    assert progress_of(timing, stage) == {**known, "stage": stage["stage"], "stage_since": 1.0}
    assert progress_of(timing | {"round": 1})["timing_seconds_left"] is None


def test_the_cards_of_an_estimate_are_counted() -> None:
    estimate = {"event": "estimate", "estimate": {}}
    cards = progress_of({"event": "started", "gpus": ["a10"] * 34}, phase("predicting", cards=33), estimate, estimate)
    assert (cards["cards_wanted"], cards["cards"], cards["cards_done"]) == (34, 33, 2)
    assert progress_of(estimate) == {}  # of a measurement


@pytest.mark.parametrize(
    "seconds", [None, "1", True, -1.0, float("nan"), float("inf"), 10**400, [], LONGEST_SECONDS * 2]
)
def test_what_is_no_time_of_a_run_is_its_beginning(seconds: object) -> None:
    assert seconds_of({"seconds": seconds}) == 0.0


def test_other_settings_of_an_estimate_are_counted_by_their_stages() -> None:
    stages = [{"event": "stage", "stage": f"change {number} of 12: precision bf16"} for number in (1, 2, 3)]
    assert progress_of(*stages)["turn"] == [3, 12, 0.0]
