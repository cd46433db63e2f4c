"""Does one batch size fit? It alone is run, and nothing is claimed of any other."""

import pytest

from engine.cli.measure import exit_status
from engine.describe.boundary import check_answer
from engine.errors import SpecError, WorkloadFailed
from engine.results.result import Outcome, Purpose, Reason, RecommendedBy, RunResult
from engine.runner import measure
from engine.spec import RunSpec
from tests.engine.fake_worker import FakeWorker


def check(worker: FakeWorker, size: int, **settings) -> RunResult:
    spec = RunSpec("bert-tiny", check_batch_size=size, **settings)
    return measure(spec, worker=worker, estimates=True)


def test_a_size_that_trains_is_the_only_one_that_is_run():
    result = check(FakeWorker(528), 100, soak_steps=7)
    [probe] = result.probes
    assert (probe.batch_size, probe.steps, probe.purpose, probe.fresh_process) == (100, 7, Purpose.SOAK, True)
    assert (result.fits, exit_status(result)) == (True, 0)
    assert check_answer(result).startswith("Batch 100 fits: it trained 7 steps in a fresh process. It took ")


def test_a_size_that_trains_is_at_least_the_largest_and_no_certificate():
    result = check(FakeWorker(528), 100)
    boundary = result.boundary
    assert (boundary.largest_batch_size, boundary.certified, boundary.reason) == (100, False, Reason.ONE_SIZE)
    assert (result.recommended, result.fastest, result.speedup) == (None, None, None)
    assert result.speed.recommended_by is RecommendedBy.NOTHING


def test_of_a_size_that_is_refused_nothing_is_known_below_it():
    result = check(FakeWorker(528), 529)
    boundary = result.boundary
    assert [probe.batch_size for probe in result.probes] == [529]
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (None, 529, False)
    assert (result.fits, exit_status(result)) == (False, 3)
    assert check_answer(result) == "Batch 529 does not fit: it ran out of memory in a fresh process. 529 refused."


def test_a_limit_that_is_not_memory_is_told_as_one():
    result = check(FakeWorker(300, refusal=Outcome.SIZE_LIMIT), 301)
    assert (result.fits, result.boundary.reason, exit_status(result)) == (False, Reason.SIZE_LIMIT, 3)
    assert "hit a limit that is not memory" in check_answer(result)


def test_a_spent_time_budget_answers_neither_yes_nor_no():
    result = check(FakeWorker(528, time_is_up_after=0), 100)
    assert (result.fits, result.boundary.reason, exit_status(result)) == (None, Reason.TIME_BUDGET, 5)
    assert check_answer(result) == "Batch 100: not known, because the time ended first."


def test_a_step_that_fails_for_another_reason_is_an_error_and_no_answer():
    with pytest.raises(WorkloadFailed):
        check(FakeWorker(300, refusal=Outcome.ERROR), 301)


def test_the_result_document_holds_the_answer():
    assert check(FakeWorker(528), 100).to_dict()["fits"] is True
    assert measure(RunSpec("bert-tiny"), worker=FakeWorker(4), estimates=False).to_dict()["fits"] is None


@pytest.mark.parametrize("size", [0, 65_537, 1_048_577])
def test_a_size_that_could_never_be_run_names_the_field(size):
    with pytest.raises(SpecError, match="check_batch_size: "):
        RunSpec("bert-tiny", check_batch_size=size)
