"""The race of an own script, with starts that are made up: what is tried first, what is offered, what is said."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.cli.tune_faster import say_found
from engine.errors import WorkloadFailed
from engine.facts.speed_rounds import SpeedClaim
from engine.race.field import NOTHING_TIMED
from engine.race.numbers import Sameness
from engine.race.text import cells, lines_to_paste, pays_after
from engine.trainings.script.faster import run, starts
from engine.trainings.script.faster.run import make_faster
from engine.trainings.script.faster.spec import OwnRaceSpec
from engine.trainings.script.faster.starts import Starts
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.start.launch import Watching
from tests.engine.trainings.script.made_up_script import LOSSES, MODEL, Busy, MadeUp, raced
from tests.engine.trainings.script.test_evidence import reading


def test_the_fastest_is_found_with_its_line_and_what_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", "bf16")
    assert (result.chosen, result.verdict.claim, result.today.batch_size) == (("fused",), SpeedClaim.FIGURE, 32)
    saves = "saves $100.00 [$100.00, $100.00] a year"
    assert result.headline == f"2.00x [2.00, 2.00] as fast with 1 line: Fused optimizer; {saves}."
    assert lines_to_paste(result.chosen, result.rows) == ["torch.optim.Adam(..., fused=True)"]
    assert {row.name: row.numbers.sameness for row in result.rows if row.numbers} == {
        "fused": Sameness.BITS,
        "bf16": Sameness.BITS,
    }
    assert json.loads(json.dumps(result.to_dict()))["rows"][0]["speed"]["value"] == pytest.approx(2.0)


def test_two_that_gain_are_raced_together(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", "compile")
    assert result.chosen == ("fused", "compile")
    assert result.verdict.gain is not None
    assert result.verdict.gain.value == pytest.approx(1 / (0.5 * 0.8))
    assert result.chosen_numbers is not None


def test_what_trains_otherwise_is_not_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = raced("fused", off={"fused": 0.1})
    assert (result.chosen, made_up.started.count(("fused",))) == ((), 1)
    assert "differ by more than its precision explains" in (result.rows[0].reason or "")


@pytest.mark.parametrize(("off", "is_offered"), [(0.05, True), (0.07, False)])
def test_dropout_on_a_card_explains_what_other_masks_change_and_no_more(off: float, is_offered: bool) -> None:
    result, made_up = raced("bf16", masks=0.02, off={"bf16": off}, times={"bf16": 0.5})
    assert (result.today.mask_noise, made_up.started[:3]) == (pytest.approx(0.02), [(), (), ()])
    assert (result.chosen == ("bf16",), result.rows[0].draws_elsewhere) == (is_offered, is_offered)


def test_changes_on_top_of_workers_are_compared_with_these_which_draw_the_same() -> None:
    draws = {"loaders": [[1, False, False, True, 9]], "draws_random": True}
    changes = {"noted": draws, "waits": True, "off": {"workers": 0.5}}
    result, _ = raced("workers", "fused", **changes)
    assert result.chosen == ("workers", "fused")
    other, _ = raced("workers", "fused", off_together=0.1, **changes)
    fused = next(row for row in other.rows if row.name == "fused")
    assert (other.chosen, fused.reason) == (("workers",), "its losses differ by more than its precision explains")


def test_a_loss_that_is_not_finite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", off={"fused": float("inf")})
    assert result.rows[0].reason == "one of its losses, or of today's, is not finite"
    monkeypatch.setattr(MadeUp, "_losses", lambda *_: [float("nan")] * 5)
    result, _ = raced("fused")
    assert result.rows[0].reason == "whether it trains the same cannot be told: no finite loss was seen"


def test_other_masks_with_a_loss_that_is_not_finite_excuse_nothing() -> None:
    result, _ = raced("bf16", masks=float("inf"), off={"bf16": 0.05}, times={"bf16": 0.5})
    assert (result.today.mask_noise, result.chosen) == (0.0, ())


def test_a_training_that_is_not_repeatable_offers_nothing_it_cannot_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    once = iter([0.0, 0.2, 0.3])
    monkeypatch.setattr(MadeUp, "_losses", lambda *_: [loss * (1 + shift) for shift in [next(once)] for loss in LOSSES])
    result, _ = raced("fused")
    assert "cannot be told: two starts of today's training differ" in (result.rows[0].reason or "")


def test_one_that_fails_is_a_row_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", "compile", failing=("compile",))
    failed = next(row for row in result.rows if row.name == "compile")
    assert (result.chosen, failed.speed) == (("fused",), None)
    assert "it failed: RuntimeError" in (failed.reason or "")


def test_today_s_training_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> tuple[list[Reading], Ended]:
        return [reading([], ended="error", error_type="ValueError", error_message="no data")], Ended(exit_status=1)

    monkeypatch.setattr(starts, "start", fails)
    with pytest.raises(WorkloadFailed, match="the training as it is failed"):
        make_faster(OwnRaceSpec(("python", "train.py", "{batch_size}")))


def test_a_training_that_ends_before_a_step_is_timed_is_an_error() -> None:
    with pytest.raises(WorkloadFailed, match="gave no step to time: it has too little data or steps"):
        raced("fused", steps=4)


def test_what_trains_otherwise_together_is_said_and_not_that_nothing_is_faster() -> None:
    result, _ = raced("fused", "compile", off_together=0.1)
    assert result.chosen == ()
    assert result.headline.startswith("Nothing is recommended: the fastest combination does not train the same")


WAITS: Any = {"noted": {"loaders": [[0, False, False, True, 9]]}, "waits": True}


def test_a_change_that_adds_nothing_to_the_workers_is_not_recommended_with_their_gain() -> None:
    """Both are compared with today's training: what leads by a hair would pass on the gain of the workers."""
    result, _ = raced("workers", "bf16", times={"bf16": 0.985}, **WAITS)
    assert result.at_rest is not None
    assert (result.at_rest.leader, result.chosen) == (("bf16",), ("workers",))
    assert result.verdict == result.at_workers


def test_compiling_on_top_of_the_workers_pays_by_the_steps_that_they_left() -> None:
    result, _ = raced("workers", "compile", **WAITS)
    row = next(each for each in result.rows if each.name == "compile")
    assert (result.chosen, row.beside) == (("workers", "compile"), ("workers",))
    assert row.pays_after_steps == pays_after(row.compile_seconds, row.speed, 0.01)
    assert cells(row, None, result.verdict)[0] == "torch.compile (both with workers)"


def test_more_workers_where_there_are_some_may_draw_other_numbers() -> None:
    loaders = {"loaders": [[1, False, False, True, 9]]}
    result, _ = raced("workers", noted=loaders, waits=True, off={"workers": 0.1})
    assert (result.chosen, result.rows[0].draws_elsewhere) == (("workers",), True)
    assert "other random numbers" in cells(result.rows[0], None, result.verdict)[3]


def test_where_data_is_waited_for_the_workers_are_raced_first_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loaders = {"loaders": [[0, False, False, True, 9]]}
    result, made_up = raced("fused", "workers", noted=loaders, waits=True)
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
    raced("workers", noted={"loaders": [[0, False, False, True, 9]]}, waits=True)
    timed = [each for each in watched if each.faster and not each.faster["is_trial"]]
    step_seconds, ahead = 0.03, 8 * 2 + 8 - 1  # two batches of each worker, and less than one burst more
    assert {each.timed_steps for each in timed} == {round(2.0 / step_seconds) + ahead}
    assert [each.timed_seconds for each in timed] == pytest.approx([15 + ahead * step_seconds] * len(timed))


def test_outputs_that_are_held_are_told_by_the_memory_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = raced("release-outputs", noted={"kept_bytes": 400})
    assert (result.chosen, made_up.started.count(("release-outputs",))) == ((), 1)
    assert [row.name for row in result.savers] == ["release-outputs"]
    assert result.headline.startswith("Outputs released after each step: 44.4 % less memory. No change")


def test_what_takes_less_memory_and_far_longer_is_no_advice() -> None:
    """bf16 on a CPU that has no instructions for it: a tenth of the memory less, and thirteen times as long."""
    result, _ = raced("fused", "bf16", times={"bf16": 13.0}, peaks={"bf16": 800})
    row = next(each for each in result.rows if each.name == "bf16")
    assert ((row.memory_bytes or 0) < result.today.memory_bytes, row.reason, result.savers) == (True, None, [])
    assert result.headline.startswith("No change")


def test_nothing_found_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", times={})
    assert (result.chosen, result.savings.per_year_usd) == ((), None)
    assert result.headline.startswith("No change that was tried")


def test_beside_a_busy_machine_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced("fused", machine=Busy)
    assert (result.chosen, result.rows[0].speed, len(result.rounds)) == ((), None, 3)
    assert cells(result.rows[0], None, result.verdict)[1] == "not known"
    assert result.headline.startswith("Nothing is claimed: other programs ran in ")


def test_that_the_workers_may_gain_stays_open_where_nothing_else_does() -> None:
    result, _ = raced("fused", times={})
    assert replace(result, at_workers=NOTHING_TIMED).headline.startswith("Nothing is claimed")


def test_a_race_whose_time_ended_first_claims_neither_a_gain_nor_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "MOST_SECONDS", 1e-9)
    result, _ = raced("fused")
    assert (result.chosen, result.verdict.claim, result.verdict.ended_early) == ((), SpeedClaim.NOTHING, True)
    assert result.headline.startswith("Nothing is claimed: the time budget ended")


def test_a_variant_that_comes_to_nothing_is_not_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    result, made_up = raced("fused", noted={"applied": []})
    assert "the script sets it itself" in (result.rows[0].reason or "")
    assert made_up.started.count(("fused",)) == 1


def test_a_batch_size_that_is_a_guess_is_not_stated(capsys: pytest.CaptureFixture[str]) -> None:
    """State no batch size of tokens without a loader: their first dimension may be their length."""
    unsure = {"models": [MODEL | {"begins_with_rows": False}]}
    result, _ = raced("fused", noted=unsure, waits=True)
    say_found(result)
    said = capsys.readouterr().out
    assert "starts of train.py as it is on" in " ".join(said.split())
    assert "of each step was spent waiting" in " ".join(said.split())
    assert "with batch" not in said
