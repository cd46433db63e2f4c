"""The search over starts, with starts that are made up."""

from typing import Any

import pytest

from engine.errors import WorkloadFailed
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from tests.engine.tune.test_evidence import reading, steps

REFUSED = {"pid": 1, "rank": 0, "world_size": 1, "ended": "error", "device": None, "held": [], "events": [], "card": {}}
REFUSED |= {"error_type": "OutOfMemoryError", "error_message": "CUDA out of memory", "python": "3.11.7"}
REFUSED |= {"marks": [[0.0, "armed", "2.13.0", ["train.py"]]]}


def test_a_command_that_runs_out_of_memory_before_any_step_fails_with_what_it_said(monkeypatch) -> None:
    monkeypatch.setattr(run, "start", lambda *_, **__: ([Reading(REFUSED)], Ended(exit_status=1)))
    with pytest.raises(WorkloadFailed, match="came to no optimizer step: OutOfMemoryError: CUDA out of memory"):
        run.tune(TuneSpec(("python", "train.py", "{batch_size}")))


def made_up_start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
    """A training whose steps take a second whatever their size, and 100 bytes a sample."""
    return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=1.0)


def tuned(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[run.TuneResult, list[dict[str, Any]]]:
    monkeypatch.setattr(run, "start", made_up_start)
    events: list[dict[str, Any]] = []
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, **settings)
    return run.tune(spec, events.append), events


def test_starts_in_turns_give_a_speed_up_and_only_the_two_sizes_a_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, events = tuned(monkeypatch, compare_speed=True, start_batch_size=32)
    result = found.result
    assert (found.largest_batch_size, found.recommended_batch_size, found.is_certified) == (40, 38, True)
    assert (result.speedup, result.speedup_low) == (pytest.approx(38 / 16), pytest.approx(38 / 16))
    assert (result.largest.samples_per_second, result.recommended.samples_per_second) == (None, pytest.approx(38.0))
    assert (result.fastest, result.speed.rounds, result.current.batch_size) == (None, 6, 16)
    assert [size for size, _ in found.training.starts][-12:] == [16, 38, 38, 16] * 3
    assert [e["phase"] for e in events if e["event"] == "phase"] == ["searching", "curve", "timing", "finished"]
    assert [e["round"] for e in events if e["event"] == "timing"] == [1, 2, 3, 4, 5, 6]


def test_without_the_option_each_size_has_its_throughput_and_no_speed_is_compared(monkeypatch) -> None:
    found, _ = tuned(monkeypatch)
    throughputs = {each.batch_size: each for each in found.training.throughputs}
    assert (throughputs[38].samples_per_second, throughputs[38].waiting_fraction) == (38.0, pytest.approx(0.25))
    assert found.result.speed.reason == run.NOT_COMPARED
    assert (found.result.speedup, found.training.turns) == (None, None)


def test_today_s_size_that_does_not_train_has_no_speed_to_compare_with(monkeypatch) -> None:
    found, _ = tuned(monkeypatch, compare_speed=True, current_batch_size=48)
    assert found.result.speed.reason == "your 48 did not train here: no speed to compare with"


def test_a_time_budget_that_ends_before_six_pairs_claims_no_speed(monkeypatch) -> None:
    def seconds_left(tuning: Any) -> float:
        return 0.0 if tuning.in_turns is not None and len(tuning.in_turns.timed) > 4 else 100.0

    monkeypatch.setattr(run._Tuning, "_seconds_left", property(seconds_left))
    found, _ = tuned(monkeypatch, compare_speed=True)
    reason = "speed not measured: the time budget ended after 2 of at least 6 pairs of starts"
    assert (found.result.speed.reason, found.result.speedup, found.recommended_batch_size) == (reason, None, 38)
