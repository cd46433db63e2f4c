"""A run goes from search to soak to curve to answer, also of one size alone, and always ends in a true statement."""

import itertools
import math
import random
import signal

import pytest

from engine.cli.measure import exit_status
from engine.describe.reserve import describe_reserve
from engine.describe.result import answer_of, answer_of_check, is_today_refused
from engine.errors import WorkerFailed, WorkloadFailed
from engine.facts.intervals import NORMAL_95
from engine.facts.result import Outcome, Purpose, Reason, RecommendedBy, RunResult
from engine.facts.speed_rounds import SpeedClaim
from engine.questions.size import measure
from engine.race.speed.rounds import RUN_TO_RUN
from engine.settings.spec import RunSpec
from tests.engine.fake_worker import FakeWorker


def run(worker, events=None, estimates=False, **settings) -> RunResult:
    emit = (events if events is not None else []).append
    return measure(RunSpec("bert-tiny", **settings), emit, worker=worker, estimates=estimates)


def purposes(result: RunResult, purpose: Purpose) -> list[int]:
    return [p.batch_size for p in result.probes if p.purpose is purpose]


def test_the_boundary_is_certified_by_two_executed_probes():
    result = run(FakeWorker(528))
    assert (result.boundary.largest_batch_size, result.boundary.refused_batch_size) == (528, 529)
    assert result.boundary.certified
    refusal = next(p for p in result.probes if p.batch_size == 529)
    assert refusal.fresh_process
    assert result.boundary.refusal == "529 refused"


def test_what_is_known_is_said_before_the_speeds_are_compared_and_comparing_can_be_left_out():
    events = []
    run(FakeWorker(528), events)
    at = next(n for n, e in enumerate(events) if e.get("phase") == "timing")
    assert events[at]["known"].startswith("Up to 528 fit, certified. Unused at batch size 16: ")
    assert "(--no-compare-speed leaves it out)" in events[at + 1]["message"]
    alone = measure(RunSpec("bert-tiny", compare_speed=False), worker=FakeWorker(528), estimates=False)
    assert (alone.boundary.largest_batch_size, alone.recommended) == (528, None)
    assert answer_of(alone).sentence == "Up to 528 fit. None is recommended: the speeds were not compared."


def test_the_boundary_is_soaked_in_a_fresh_process():
    result = run(FakeWorker(528), soak_steps=7)
    soak = next(p for p in result.probes if p.purpose is Purpose.SOAK)
    assert (soak.batch_size, soak.steps, soak.fresh_process) == (528, 7, True)
    assert result.boundary.soak_steps == 7


def test_a_boundary_that_fails_its_soak_moves_down_and_says_why():
    result = run(FakeWorker(528, soak_boundary=500))
    boundary = result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (500, 501, True)
    assert "528 trained 3 steps, but not 5 in a row" in boundary.note
    assert result.largest.samples_per_second is not None
    assert max(p.batch_size for p in (result.fastest, result.recommended)) <= 500


@pytest.mark.parametrize("current", [1, 16, 100, 528])
def test_today_s_batch_size_is_always_probed(current):
    result = run(FakeWorker(528), current_batch_size=current)
    assert result.current.batch_size == current
    assert result.current.samples_per_second is not None


def test_today_s_batch_size_above_the_boundary_is_known_not_to_fit_and_is_not_probed():
    """After "15 does not fit", 16 was run under "Smaller sizes"."""
    worker = FakeWorker(10)
    result = run(worker, current_batch_size=64, start_batch_size=2)
    assert 64 not in worker.sizes
    assert is_today_refused(result)
    assert (result.current, result.speedup, result.savings.per_run_usd) == (None, None, None)


def test_the_curve_adds_at_most_six_sizes_and_the_edge_of_the_reserve_all_of_them_smaller():
    sizes = purposes(run(FakeWorker(60_000)), Purpose.CURVE)
    assert 0 < len(sizes) <= 6 + 1
    assert max(sizes) < 60_000


def test_nothing_fits_and_the_result_says_so():
    result = run(FakeWorker(0))
    assert result.boundary.reason is Reason.DOES_NOT_FIT
    assert (result.boundary.largest_batch_size, result.boundary.refused_batch_size) == (0, 1)
    assert (result.recommended, result.speedup, result.waste.at_current_bytes) == (None, None, None)


def test_a_size_limit_ends_the_search_with_its_own_reason_and_no_certificate():
    result = run(FakeWorker(300, refusal=Outcome.SIZE_LIMIT))
    assert result.boundary.reason is Reason.SIZE_LIMIT
    assert not result.boundary.certified


def test_the_largest_size_allowed_is_no_certificate():
    result = run(FakeWorker(528), max_batch_size=100)
    assert (result.boundary.largest_batch_size, result.boundary.certified) == (100, False)
    assert result.boundary.reason is Reason.MAX_BATCH_SIZE


def test_no_size_above_the_largest_allowed_is_ever_run_and_the_result_says_why_todays_has_no_figures():
    worker = FakeWorker(528)
    result = run(worker, max_batch_size=4, current_batch_size=16)
    assert max(worker.sizes) == 4
    assert (result.current, result.speedup) == (None, None)
    assert result.boundary.note == "the current batch size, 16, was not measured: it is above the maximum of 4"


def test_a_note_of_the_search_stays_beside_the_one_about_the_maximum():
    result = run(FakeWorker(528, soak_boundary=80), max_batch_size=100, current_batch_size=128)
    assert "100 trained 3 steps, but not 5 in a row" in result.boundary.note
    assert "128, was not measured" in result.boundary.note


@pytest.mark.parametrize(("probes", "largest"), [(0, None), (2, 16), (4, 528)])
def test_a_spent_time_budget_keeps_what_was_measured_and_certifies_nothing(probes, largest):
    result = run(FakeWorker(528, time_is_up_after=probes))
    assert result.boundary.reason is Reason.TIME_BUDGET
    assert (result.boundary.largest_batch_size, result.boundary.certified) == (largest, False)


def test_a_soak_that_failed_before_the_time_was_up_takes_the_size_away():
    result = run(FakeWorker(528, soak_boundary=400, time_is_up_after=7))
    assert [p.batch_size for p in result.probes if p.purpose is Purpose.SOAK and not p.fits] == [528, 527]
    assert (result.boundary.certified, result.boundary.reason) == (False, Reason.TIME_BUDGET)
    assert result.boundary.largest_batch_size == result.largest.batch_size < 528
    assert "527 failed its soak" in result.boundary.note


def test_a_size_of_the_curve_that_a_used_process_refuses_gets_a_fresh_one():
    worker = FakeWorker(528, refuses_when_used=frozenset({500}))
    worker.sizes.append(500)  # as if it had been run before
    result = run(worker, current_batch_size=500, start_batch_size=16)
    tried = [p for p in result.probes if p.batch_size == 500 and p.purpose is Purpose.CURVE]
    assert [(p.fits, p.fresh_process) for p in tried] == [(False, False), (True, True)]
    assert result.boundary.certified


def test_the_probes_of_the_search_are_not_timed_and_each_compared_size_is_timed_once():
    result = run(FakeWorker(528))
    timed = [p for p in result.probes if p.step_seconds is not None]
    assert {p.purpose for p in timed} == {Purpose.TIMING}
    assert len({p.batch_size for p in timed}) == len(timed) > 3


def test_the_speed_up_comes_with_its_interval_and_so_does_the_money():
    result = run(FakeWorker(528, step_seconds=lambda size: 0.001 * max(size, 64)))
    assert result.speed.is_measurable
    by_another_run = math.exp(NORMAL_95 * RUN_TO_RUN)
    assert (result.speedup_low, result.speedup_high) == pytest.approx((4 / by_another_run, 4 * by_another_run))
    assert result.savings.per_year_usd_low < result.savings.per_year_usd < result.savings.per_year_usd_high
    assert result.current.samples_per_second_low == pytest.approx(250 / by_another_run)


def test_contradicting_timings_make_no_speed_up_no_fastest_and_no_money():
    """Finding S1: a busy machine gave one size 2.96 and then 1.25 samples a second, and the run said 2.46x."""
    calls = itertools.count()
    result = run(FakeWorker(38, step_seconds=lambda size: size * ((0.3, 0.9)[next(calls) % 2] if size < 20 else 0.33)))
    assert not result.speed.is_measurable
    assert result.speed.reason == "8 is 0.33 to 3.01x as fast as batch size 16"
    assert (result.fastest, result.speedup, result.savings.per_year_usd) == (None, None, None)
    assert result.current.samples_per_second is None
    timed = [p for p in result.probes if p.purpose is Purpose.TIMING]
    assert timed
    assert {(p.samples_per_second, bool(p.timed_step_seconds)) for p in timed} == {(None, True)}


def test_without_a_known_speed_nothing_is_recommended_and_the_largest_with_reserve_has_its_own_name():
    noise = random.Random(2)
    result = run(FakeWorker(528, step_seconds=lambda size: size * noise.uniform(0.1, 2.0)))
    assert (result.speed.claim, result.speed.recommended_by) == (SpeedClaim.NOTHING, RecommendedBy.NOTHING)
    assert (result.recommended, result.batch_size_ratio, result.waste.at_recommended_bytes) == (None, None, None)
    assert result.largest_with_reserve.batch_size == 497  # (1 - 5 %) of 6,285 bytes at 1,000 + 10 a sample


def test_a_gain_that_is_known_only_in_part_claims_its_least_and_the_least_money():
    noise = random.Random(3)
    result = run(FakeWorker(528, step_seconds=lambda size: max(size, 256) * noise.uniform(0.7, 1.4) / 1000))
    assert (result.speed.claim, result.speed.is_measurable) == (SpeedClaim.AT_LEAST, False)
    assert result.recommended.batch_size > 16
    assert (result.speedup, result.savings.per_run_usd, result.recommended.samples_per_second) == (None, None, None)
    assert 1.03 < result.speedup_low < 16 < result.speedup_high * 2
    assert 0 < result.savings.per_run_usd_low < result.savings.per_run_usd_high


@pytest.mark.parametrize("probes", range(1, 12))
def test_a_run_whose_time_ends_recommends_nothing_that_was_not_compared(probes: int):
    """Finding S1-1: seven runs of seven that ended early advised 1, with code to paste."""
    result = run(FakeWorker(528, time_is_up_after=probes), current_batch_size=8)
    assert (result.recommended, result.speed.recommended_by) == (None, RecommendedBy.NOTHING)
    with_reserve = result.largest_with_reserve
    assert with_reserve is None or with_reserve.batch_size >= 480


def test_the_size_at_the_reserve_is_measured_before_the_curve_and_the_speeds():
    result = run(FakeWorker(528))
    after_the_soak = [p.batch_size for p in result.probes if p.purpose is Purpose.CURVE]
    assert after_the_soak[0] == 497


def test_the_recommended_size_keeps_the_reserve_where_the_largest_is_the_fastest():
    result = run(FakeWorker(528, step_seconds=lambda _: 1.0))
    assert (result.fastest.batch_size, result.recommended.batch_size) == (528, 497)
    assert run(FakeWorker(528, step_seconds=lambda _: 1.0), reserve_fraction=0).recommended.batch_size == 528


def test_bytes_that_are_to_stay_free_stand_in_place_of_the_share_and_are_told_as_given():
    result = run(FakeWorker(528, step_seconds=lambda _: 1.0), reserve_bytes=1285)
    assert (result.device.limit_bytes, result.recommended.batch_size) == (6285, 400)
    assert describe_reserve(result) == "400 leaves 1.3 KiB free, 20.4 %; requested: at least 1.3 KiB."


def test_a_size_that_cannot_be_timed_beside_the_others_is_left_out_and_named():
    events: list[dict] = []
    result = run(FakeWorker(528, step_seconds=lambda _: 1.0, not_together=frozenset({528})), events)
    assert result.speed.left_out_batch_sizes == (528,)
    assert result.fastest.batch_size == 497
    assert any("did not fit together" in e["message"] for e in events if e["event"] == "log")


def test_a_time_budget_spent_while_timing_claims_no_speed():
    result = run(FakeWorker(528, time_is_up_after=25))
    assert result.boundary.certified
    assert result.speed.reason == "the time budget ended before the speeds were compared"
    assert (result.recommended, result.largest_with_reserve.batch_size) == (None, 497)


def test_other_work_is_told_with_the_result():
    events: list[dict] = []
    result = run(FakeWorker(528, others_cores=1.6), events)
    assert result.speed.others_cores == pytest.approx(1.6)
    assert any(e.get("message", "").startswith("other programs used 1.6 of") for e in events)


def test_the_rounds_are_told_with_the_time_that_is_left_at_most():
    events: list[dict] = []
    run(FakeWorker(528), events)
    told = [e for e in events if e["event"] == "timing"]
    assert [e["round"] for e in told] == list(range(1, len(told) + 1))
    assert all(e["seconds_left_at_most"] >= 0 and e["batch_sizes"] for e in told)


def test_every_probe_is_told_the_moment_it_ends():
    events: list[dict] = []
    result = run(FakeWorker(528), events)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "started"
    assert kinds[-1] == "result"
    told = [event["probe"] for event in events if event["event"] == "probe"]
    assert told == [p.to_dict() for p in result.probes]
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert phases == ["preparing", "searching", "soaking", "curve", "timing", "explaining", "finished"]


class FailingWorker(FakeWorker):
    """Fits up to `boundary`; above it a step raises something that is no memory, or ends its process with `status`."""

    def __init__(self, boundary: int, status: int | None = None) -> None:
        super().__init__(boundary, refusal=Outcome.ERROR)
        self.status = status

    def probe(self, batch_size, **settings):
        probe = super().probe(batch_size, **settings)
        if self.status is None or probe.fits:
            return probe
        error = WorkerFailed(f"the worker process was ended by signal {-self.status}")
        error.status = self.status
        raise error


@pytest.mark.parametrize("status", [None, -signal.SIGSEGV, -signal.SIGABRT])
def test_an_unknown_error_above_a_size_that_fitted_ends_the_search_there_and_loses_no_probe(status):
    result = run(FailingWorker(300, status))
    boundary = result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size) == (300, 301)
    assert (boundary.certified, boundary.reason) == (False, Reason.ERROR)
    assert boundary.refusal
    failures = [p for p in result.probes if p.batch_size == 301 and p.outcome is Outcome.ERROR]
    assert failures[-1].fresh_process
    assert result.recommended is not None


def test_an_unknown_error_at_batch_1_fails_the_run_with_its_text():
    with pytest.raises(WorkloadFailed, match="a training step failed: BudgetExceeded: 1 refused"):
        run(FailingWorker(0))


@pytest.mark.parametrize("status", [-signal.SIGKILL, -signal.SIGTERM, 1])
def test_a_process_that_was_ended_from_outside_says_nothing_of_a_size(status):
    with pytest.raises(WorkerFailed):
        run(FailingWorker(300, status))


def test_a_result_names_its_run_as_its_first_events_do():
    events = []
    facts = {"run_key": "ab" * 16, "host": "node7", "started_at": "2026-11-23T08:00:00+00:00", "slurm_job_id": "4712"}
    result = measure(RunSpec("bert-tiny"), events.append, worker=FakeWorker(20), started_as=facts, estimates=False)
    (device,) = (event for event in events if event["event"] == "device")
    assert facts.items() <= result.environment.items()
    assert device["environment"] == result.environment
    other = measure(RunSpec("bert-tiny"), worker=FakeWorker(20), estimates=False)
    assert (
        other.environment["run_key"]
        != measure(RunSpec("bert-tiny"), worker=FakeWorker(20), estimates=False).environment["run_key"]
    )


def check(worker: FakeWorker, size: int, **settings) -> RunResult:
    spec = RunSpec("bert-tiny", check_batch_size=size, **settings)
    return measure(spec, worker=worker, estimates=True)


def test_a_size_that_trains_is_the_only_one_that_is_run():
    result = check(FakeWorker(528), 100, soak_steps=7)
    [probe] = result.probes
    assert (probe.batch_size, probe.steps, probe.purpose, probe.fresh_process) == (100, 7, Purpose.SOAK, True)
    assert (result.fits, exit_status(result)) == (True, 0)
    assert answer_of_check(result).text.startswith("Batch 100 fits: it trained 7 steps in a fresh process. It took ")


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
    assert (
        answer_of_check(result).text == "Batch 529 does not fit: it ran out of memory in a fresh process. 529 refused."
    )


def test_a_limit_that_is_not_memory_is_told_as_one():
    result = check(FakeWorker(300, refusal=Outcome.SIZE_LIMIT), 301)
    assert (result.fits, result.boundary.reason, exit_status(result)) == (False, Reason.SIZE_LIMIT, 3)
    assert "hit a limit that is not memory" in answer_of_check(result).text


def test_a_spent_time_budget_answers_neither_yes_nor_no():
    result = check(FakeWorker(528, time_is_up_after=0), 100)
    assert (result.fits, result.boundary.reason, exit_status(result)) == (None, Reason.TIME_BUDGET, 5)
    assert answer_of_check(result).text == "Batch 100: not known, because the time ended first."


def test_a_step_that_fails_for_another_reason_is_an_error_and_no_answer():
    with pytest.raises(WorkloadFailed):
        check(FakeWorker(300, refusal=Outcome.ERROR), 301)


def test_the_result_document_holds_the_answer():
    assert check(FakeWorker(528), 100).to_dict()["fits"] is True
    assert measure(RunSpec("bert-tiny"), worker=FakeWorker(4), estimates=False).to_dict()["fits"] is None
