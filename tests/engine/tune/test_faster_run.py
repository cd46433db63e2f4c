"""The race of an own script, with starts that are made up: what is tried first, what is offered, what is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cli.tune_faster import headline_of
from engine.errors import WorkloadFailed
from engine.race.numbers import Sameness
from engine.race.text import cells, lines_to_paste, memory_savers
from engine.results.speed_rounds import SpeedClaim
from engine.tune.evidence import Ended
from engine.tune.faster import run, starts
from engine.tune.faster.result import FasterResult
from engine.tune.faster.run import make_faster
from engine.tune.faster.spec import OWN, FasterSpec
from engine.tune.faster.starts import Starts
from engine.tune.reading import Reading
from engine.tune.start.launch import Watching
from tests.engine.quiet_machine import QuietMachine
from tests.engine.tune.test_evidence import marks_of, reading, steps
from tests.engine.tune.test_faster_variants import ADAM, MODEL

LOSSES = [2.0, 1.9, 1.8, 1.7, 1.6]
TIMES = {"fused": 0.5, "compile": 0.8, "bf16": 2.0}
"""How long a step is with each of them, of today's."""


class MadeUp:
    """A training whose steps take a hundredth of a second, and what is changed of it."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.started: list[tuple[str, ...]] = []

    def __call__(self, _: object, __: int, watching: Watching, **___: object) -> tuple[list[Reading], Ended]:
        assert watching.faster is not None
        wanted = tuple(watching.faster["set"])
        self.started.append(wanted)
        if {*wanted} & {*self.changes.get("failing", ())}:
            failed = {"ended": "error", "error_type": "RuntimeError", "error_message": "no kernel"}
            return [reading([], **failed, faster=None)], Ended(exit_status=1, wall_seconds=1.0)
        step = 0.01
        for name in wanted:
            step *= self.changes.get("times", TIMES).get(name, 1.0)
        noted = {"loaders": [], "models": [MODEL], "optimizers": [ADAM], "kept_bytes": 0, "framework": "torch"}
        noted |= {"matmul_precision": "highest", "cudnn_benchmark": False, "draws_random": False}
        noted |= {"applied": list(wanted), "losses": self._losses(wanted)} | self.changes.get("noted", {})
        marks = [mark for mark in marks_of(steps(32), step_seconds=step) if mark[1] not in ("loading", "loaded")]
        if self.changes.get("waits") and "workers" not in wanted:
            marks = marks_of(steps(32), step_seconds=3 * step)
            for mark in marks:  # the loader waits for most of a step
                if mark[1] == "loaded":
                    mark[0] += 1.7 * step
            marks.sort(key=lambda mark: mark[0])
        peak = 500 if "release-outputs" in wanted else 900
        return [reading(steps(32), peak=peak, python="3.11.7", faster=noted, marks=marks)], Ended(wall_seconds=1.0)

    def _losses(self, wanted: tuple[str, ...]) -> list[float]:
        off = max((self.changes.get("off", {}).get(name, 0.0) for name in wanted), default=0.0)
        return [loss * (1 + off) for loss in LOSSES]


def found(monkeypatch: pytest.MonkeyPatch, *tried: str, **changes: Any) -> tuple[FasterResult, MadeUp]:
    made_up = MadeUp(**changes)
    monkeypatch.setattr(starts, "start", made_up)
    monkeypatch.setattr(starts, "MachineWatch", changes.get("machine", QuietMachine))
    spec = FasterSpec(("python", "train.py"), batch=OWN, tried=tried, price_per_hour_usd=1.0)
    return make_faster(spec), made_up


def test_the_fastest_is_found_with_its_line_and_what_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = found(monkeypatch, "fused", "bf16")
    assert (result.chosen, result.verdict.claim, result.today.batch_size) == (("fused",), SpeedClaim.FIGURE, 32)
    assert headline_of(result) == "2.00x [2.00, 2.00] as fast with 1 line: Fused optimizer; saves $100.00 a year."
    assert lines_to_paste(result.chosen, result.rows) == ["torch.optim.Adam(..., fused=True)"]
    assert {row.name: row.numbers.sameness for row in result.rows if row.numbers} == {
        "fused": Sameness.BITS,
        "bf16": Sameness.BITS,
    }
    assert json.loads(json.dumps(result.to_dict()))["variants"][0]["speed"]["value"] == pytest.approx(2.0)


def test_two_that_gain_are_raced_together(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = found(monkeypatch, "fused", "compile")
    assert result.chosen == ("fused", "compile")
    assert result.verdict.gain is not None
    assert result.verdict.gain.value == pytest.approx(1 / (0.5 * 0.8))
    assert result.chosen_numbers is not None


def test_what_trains_otherwise_is_not_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = found(monkeypatch, "fused", off={"fused": 0.1})
    assert (result.chosen, made_up.started.count(("fused",))) == ((), 1)
    assert "differ by more than its precision explains" in (result.rows[0].reason or "")


def test_a_training_that_is_not_repeatable_offers_nothing_it_cannot_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    once = iter([0.0, 0.2, 0.3])
    monkeypatch.setattr(MadeUp, "_losses", lambda *_: [loss * (1 + shift) for shift in [next(once)] for loss in LOSSES])
    result, _ = found(monkeypatch, "fused")
    assert "differ too much to tell" in (result.rows[0].reason or "")


def test_one_that_fails_is_a_row_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = found(monkeypatch, "fused", "compile", failing=("compile",))
    failed = next(row for row in result.rows if row.name == "compile")
    assert (result.chosen, failed.speed) == (("fused",), None)
    assert "it failed: RuntimeError" in (failed.reason or "")


def test_today_s_training_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> tuple[list[Reading], Ended]:
        return [reading([], ended="error", error_type="ValueError", error_message="no data")], Ended(exit_status=1)

    monkeypatch.setattr(starts, "start", fails)
    monkeypatch.setattr(starts, "unwatched", lambda _: None)
    with pytest.raises(WorkloadFailed, match="the training as it is failed"):
        make_faster(FasterSpec(("python", "train.py", "{batch_size}")))


def test_where_data_is_waited_for_the_workers_are_raced_first_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loaders = {"loaders": [[0, False, False, True, 9]]}
    result, made_up = found(monkeypatch, "fused", "workers", noted=loaders, waits=True)
    assert result.today.is_limited_by_loader
    assert made_up.started.index(("workers",)) < made_up.started.index(("workers", "fused"))
    assert ("fused",) not in made_up.started
    assert result.chosen == ("workers", "fused")
    assert result.verdict.gain is not None
    assert result.verdict.gain.value == pytest.approx(3 / 0.5)


def test_a_start_is_timed_beyond_what_its_workers_have_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Watching] = []
    call = MadeUp.__call__

    def noting(made_up: MadeUp, begin: object, size: int, watching: Watching, **options: object) -> Any:
        watched.append(watching)
        return call(made_up, begin, size, watching, **options)

    monkeypatch.setattr(MadeUp, "__call__", noting)
    monkeypatch.setattr(Starts, "cores", property(lambda _: 8))
    found(monkeypatch, "workers", noted={"loaders": [[0, False, False, True, 9]]}, waits=True)
    timed = [each for each in watched if each.faster and not each.faster["is_trial"]]
    step_seconds, ahead = 0.03, 8 * 2
    assert {each.timed_steps for each in timed} == {round(2.0 / step_seconds) + ahead}
    assert [each.timed_seconds for each in timed] == pytest.approx([15 + ahead * step_seconds] * len(timed))


def test_outputs_that_are_held_are_told_by_the_memory_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = found(monkeypatch, "release-outputs", noted={"kept_bytes": 400})
    assert (result.chosen, made_up.started.count(("release-outputs",))) == ((), 1)
    assert [row.name for row in memory_savers(result.rows, (), result.today.memory_bytes)] == ["release-outputs"]
    assert headline_of(result).startswith("Outputs released after each step: 44.4 % less memory. Nothing found")


def test_nothing_found_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = found(monkeypatch, "fused", times={})
    assert (result.chosen, result.savings.per_year_usd) == ((), None)
    assert headline_of(result).startswith("Nothing found: no change that was tried")


def test_beside_a_busy_machine_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(QuietMachine):
        def read(self) -> dict[str, Any]:
            return {"others_cores": 100.0}

    result, _ = found(monkeypatch, "fused", machine=Busy)
    assert (result.chosen, result.rows[0].speed, len(result.rounds)) == ((), None, 12)
    assert cells(result.rows[0], None)[1] == "about 2.0x"
    assert headline_of(result).startswith("Nothing is claimed: other programs ran in ")


def test_a_race_whose_time_ended_first_claims_neither_a_gain_nor_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "MOST_SECONDS", 1e-9)
    result, _ = found(monkeypatch, "fused")
    assert (result.chosen, result.verdict.claim, result.verdict.ended_early) == ((), SpeedClaim.NOTHING, True)
    assert headline_of(result).startswith("Nothing is claimed: the time budget ended")


def test_a_variant_that_comes_to_nothing_is_not_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = found(monkeypatch, "fused", noted={"applied": []})
    assert "the script sets it itself" in (result.rows[0].reason or "")
    assert made_up.started.count(("fused",)) == 1
