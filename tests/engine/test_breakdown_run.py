"""The end of a run: which size is explained, and that nothing of the result depends on it."""

import pytest

from engine.errors import TimeIsUp, WorkerFailed
from engine.results.memory_breakdown import LiveBlock, MemoryBreakdown, Request, entries_of
from engine.results.result import Outcome, Reason
from engine.runner import measure
from engine.spec import RunSpec
from tests.engine.fake_worker import FakeWorker

BREAKDOWN = MemoryBreakdown(
    41, "refusal", "measured", 8, 10, Request(3, "mlp", "forward", "gelu"), entries_of([LiveBlock(8, "inputs")], 8)
)


def run(worker, **changes):
    events = []
    parts = {name: changes.pop(name) for name in ("explains",) if name in changes}
    return measure(RunSpec("bert-tiny", device="cpu", **changes), events.append, worker=worker, **parts), events


def test_the_refused_size_is_explained_after_everything_else():
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    result, events = run(worker)
    assert (worker.explained, result.memory_breakdown) == ([41], BREAKDOWN)
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert phases[-2:] == ["explaining", "finished"]
    assert any("Batch 41 ran out of memory" in event["message"] for event in events if event["event"] == "log")
    assert result.to_dict()["memory_breakdown"]["entries"][0]["kind"] == "inputs"


def test_where_nothing_was_refused_the_largest_size_is_explained():
    worker = FakeWorker(400, breakdown=BREAKDOWN)
    run(worker, max_batch_size=64)
    assert worker.explained == [64]


def test_a_refusal_that_is_not_for_memory_is_not_explained_as_one():
    worker = FakeWorker(40, refusal=Outcome.SIZE_LIMIT, breakdown=BREAKDOWN)
    result, _ = run(worker)
    assert (result.boundary.reason, worker.explained) == (Reason.SIZE_LIMIT, [40])


@pytest.mark.parametrize(("size", "explained"), [(41, [41]), (40, [])])
def test_a_check_explains_only_a_refusal(size, explained):
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    run(worker, check_batch_size=size)
    assert worker.explained == explained


@pytest.mark.parametrize("failure", [WorkerFailed("it crashed"), TimeIsUp("no answer"), None])
def test_a_run_does_not_fail_for_want_of_an_explanation(failure):
    result, events = run(FakeWorker(40, breakdown=failure))
    assert (result.boundary.certified, result.memory_breakdown) == (True, None)
    told = [event["message"] for event in events if event["event"] == "log" and "what filled" in event["message"]]
    assert len(told) == 1


def test_the_answer_is_the_same_without_it():
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    result, _ = run(worker, explains=False)
    assert worker.explained == []
    assert (result.memory_breakdown, result.boundary.largest_batch_size) == (None, 40)
