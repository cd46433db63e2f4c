"""The search over starts, with starts that are made up."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from engine.errors import WorkloadFailed
from engine.facts.not_compared import NotCompared
from engine.facts.speed_rounds import SpeedClaim
from engine.trainings.script import run
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec
from tests.engine.questions.answers.answers import keeps_its_boundary
from tests.engine.trainings.script.starts import document_of
from tests.engine.trainings.script.test_evidence import marks_of, reading, steps

REFUSED = {"pid": 1, "rank": 0, "world_size": 1, "ended": "error", "device": None, "events": [], "card": {}}
REFUSED |= {"error_type": "OutOfMemoryError", "error_message": "CUDA out of memory", "python": "3.11.7"}
REFUSED |= {"marks": [[0.0, "armed", "2.13.0", ["train.py"]]]}


def test_a_command_that_runs_out_of_memory_before_any_step_fails_with_what_it_said(monkeypatch) -> None:
    monkeypatch.setattr(
        "engine.trainings.script.speed.seats.start", lambda *_, **__: ([Reading(REFUSED)], Ended(exit_status=1))
    )
    with pytest.raises(WorkloadFailed, match="came to no optimizer step: OutOfMemoryError: CUDA out of memory"):
        run.tune(TuneSpec(("python", "train.py", "{batch_size}")))


def made_up_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
    """A training whose steps take a second whatever their size, and 100 bytes a sample."""
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=1.0)


def tuned(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Any] = made_up_start, **settings: Any
) -> tuple[run.TuneResult, list[dict[str, Any]]]:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start)
    events: list[dict[str, Any]] = []
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, **settings)
    return run.tune(spec, events.append), events


def test_starts_in_turns_give_a_speed_up_and_only_the_compared_sizes_a_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, events = tuned(monkeypatch, start_batch_size=32)
    result = found.result
    assert (found.largest_batch_size, found.recommended_batch_size, found.is_certified) == (40, 38, True)
    assert (result.speedup, result.speed.claim) == (pytest.approx(38 / 16), SpeedClaim.FIGURE)
    assert 2.1 < result.speedup_low < 38 / 16  # they agree by luck: starts are known to differ
    assert (result.largest.samples_per_second, result.recommended.samples_per_second) == (None, pytest.approx(38.0))
    assert (result.fastest.batch_size, result.speed.rounds, result.current.batch_size) == (38, 6, 16)
    assert Counter(size for size, _ in found.training.starts[-12:]) == {16: 6, 38: 6}
    assert [e["phase"] for e in events if e["event"] == "phase"] == ["searching", "curve", "timing", "finished"]
    assert [e["round"] for e in events if e["event"] == "timing"] == [1, 2, 3, 4, 5, 6]


def test_a_smaller_size_that_an_evaluation_was_too_large_for_takes_the_certificate_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        (found,), ended = made_up_start(None, batch_size)
        if batch_size == 38:  # it came to its evaluation, and larger ones did not
            marks = [[*mark, None, 1] if mark[1] == "memory_read" else mark for mark in found.data["marks"]]
            found = reading(steps(batch_size), python="3.11.7", marks=marks, events=[[0, 2, 9_000, 9_000]])
        return [found], ended

    found, _ = tuned(monkeypatch, start, compare_speed=False)
    assert (found.largest_batch_size, found.is_certified) == (40, False)
    assert (found.result.boundary.note or "").startswith("38 ran out of memory in an evaluation, to which 40 had not")
    assert keeps_its_boundary(document_of(found))


def bending_start(
    _: object, batch_size: int, *__: object, wall_seconds: float = 1.0, **___: object
) -> tuple[list[Reading], Ended]:
    """A training whose steps take a hundredth of a second and a little more for each sample."""
    marks = marks_of(steps(batch_size), step_seconds=0.01 + batch_size / 10_000)
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7", marks=marks)], Ended(
        wall_seconds=wall_seconds
    )


def test_the_size_at_the_bend_is_found_by_few_starts_and_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", bending_start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000)
    found = run.tune(spec)
    curve = [p.batch_size for p in found.result.probes if p.purpose == "curve"]
    assert (found.largest_batch_size, curve) == (20_000, [19_000, 1024, 256])
    assert found.recommended_batch_size == 4096
    assert found.result.largest_with_reserve.batch_size == 19_000
    assert {*found.result.speed_rounds[0].speeds()} == {1024, 4096, 19_000}


def test_no_bend_is_looked_for_where_starts_are_too_slow_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", partial(bending_start, wall_seconds=200.0))
    found = run.tune(TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=2_000_000))
    assert [p.batch_size for p in found.result.probes if p.purpose == "curve"] == [19_000]
    assert "12 more starts, the fewest that tell, would take longer" in (found.result.speed.reason or "")
    assert (found.is_certified, found.recommended_batch_size) == (True, None)


def test_without_the_comparison_each_size_has_its_throughput_and_nothing_is_recommended(monkeypatch) -> None:
    found, events = tuned(monkeypatch, compare_speed=False)
    throughputs = {each.batch_size: each for each in found.training.throughputs}
    assert (throughputs[38].samples_per_second, throughputs[38].waiting_fraction) == (38.0, pytest.approx(0.25))
    assert (found.result.speed.why, found.recommended_batch_size) == (NotCompared.STARTS_APART, None)
    assert (found.result.speedup, found.result.speed_rounds) == (None, ())
    assert "timing" not in [e["phase"] for e in events if e["event"] == "phase"]


def test_a_size_of_today_s_that_was_refused_is_no_base_of_a_speed_up(monkeypatch) -> None:
    found, _ = tuned(monkeypatch, current_batch_size=48, start_batch_size=10)
    assert (found.recommended_batch_size, found.result.current, found.result.speedup) == (38, None, None)


def test_who_trains_with_the_largest_size_already_is_compared_with_nothing(monkeypatch) -> None:
    found, _ = tuned(monkeypatch, current_batch_size=38)
    assert "no larger size than your 38 keeps the reserve" in (found.result.speed.reason or "")
    assert found.recommended_batch_size is None


def test_a_time_budget_that_ends_before_six_rounds_claims_no_speed(monkeypatch) -> None:
    monkeypatch.setattr("engine.trainings.script.speed.seats.MOST_SECONDS", -1.0)
    found, _ = tuned(monkeypatch)
    assert len(found.result.speed_rounds) == 1
    speed = found.result.speed
    assert (speed.why, found.result.speedup, found.recommended_batch_size) == (NotCompared.TIME_ENDED, None, None)


def test_a_start_that_shows_nothing_after_the_certificate_does_not_take_it_back(monkeypatch) -> None:
    def start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        """A training that ends early with the size at the reserve, and with all that are started after it."""
        started.append(batch_size)
        if batch_size == 38:
            return [reading(steps(batch_size)[:1], ended="exit")], Ended(wall_seconds=1.0)
        return made_up_start(None, batch_size)

    started: list[int] = []
    events: list[dict[str, Any]] = []
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, compare_speed=False)
    found = run.tune(spec, events.append)
    assert 38 in started
    assert (found.largest_batch_size, found.is_certified) == (40, True)
