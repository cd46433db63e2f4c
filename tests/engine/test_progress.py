"""Progress is said at most once a second, between steps, and moves no figure."""

import json

import pytest
import torch

from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, run_probe
from engine.measurement.workloads import build
from engine.progress import Paced
from engine.runner import measure
from engine.spec import RunSpec
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
