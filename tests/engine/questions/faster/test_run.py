"""A race of a catalogue model's settings, with a worker whose speeds and losses are made up."""

import json

import pytest

from engine.cli.faster import lines_to_paste, table_of
from engine.describe.result import is_short
from engine.errors import WorkloadFailed
from engine.facts.speed_rounds import SpeedClaim
from engine.questions.faster.answer import AT_OWN_SIZE, TIME_WAS_UP
from engine.questions.faster.spec import FasterSpec
from engine.race.field import TODAY
from engine.race.numbers import Sameness
from tests.engine.fake_racer import FAST, raced


def test_changes_that_gain_are_found_together_with_their_lines() -> None:
    found, _ = raced(factors=FAST)
    assert set(found.at_today.chosen) == {"fused", "bf16"}
    assert found.at_today.gain is not None
    assert found.at_today.gain.value == pytest.approx(1.95, rel=0.03)
    assert found.claim is SpeedClaim.FIGURE
    assert "as fast with" in found.headline
    assert any("fused=True" in line for line in lines_to_paste(found))


def test_each_leader_gets_a_batch_size_of_its_own() -> None:
    found, _ = raced(factors=FAST, step_seconds=lambda size: 0.1 + 0.001 * size)
    assert found.chosen_batch_size > found.batch_size
    assert found.at_own_size is not None
    assert found.at_own_size.gain is not None
    assert found.at_own_size.gain.low > found.at_today.gain.high  # type: ignore[union-attr]
    assert f"batch {found.chosen_batch_size}" in found.headline
    assert found.deciding is found.at_own_size


def test_another_batch_size_that_is_not_shown_to_add_to_the_gain_is_left_out() -> None:
    found, _ = raced(factors=FAST, step_seconds=lambda size: 0.025 * size)  # a larger batch gains nothing
    assert (found.chosen, found.chosen_batch_size) == (found.at_today.chosen, found.batch_size)
    assert found.deciding is found.at_today


def test_nothing_found_is_an_answer() -> None:
    found, _ = raced(step_seconds=lambda size: 0.1 * size)
    assert (found.chosen, found.chosen_batch_size, found.is_found) == (TODAY, 4, False)
    assert found.headline.startswith("No change")


def test_a_change_whose_losses_differ_too_much_is_a_row_with_its_reason_and_never_raced() -> None:
    found, _ = raced(factors=FAST, losses_of={"bf16": (2.0, 1.5, 1.2, 1.1, 1.3)})
    row = next(row for row in found.rows if row.entry == ("bf16",))
    assert (row.numbers.sameness, row.speed) == (Sameness.DIFFERS, None)
    assert "differ" in (row.reason or "")
    assert "bf16" not in found.chosen


def test_a_change_that_fails_is_a_row_with_its_reason_and_ends_nothing() -> None:
    found, _ = raced(factors=FAST, fails=frozenset({"compile"}))
    row = next(row for row in found.rows if row.entry == ("compile",))
    assert row.reason == "the worker process ended with status -11"
    assert found.is_found


def test_a_change_that_is_not_ready_in_its_share_of_the_time_ends_nothing() -> None:
    found, _ = raced(factors=FAST, never_ready=frozenset({"compile"}))
    row = next(row for row in found.rows if row.entry == ("compile",))
    assert row.reason == "it took more than 4 min 30 s before it could race: give more time, or try it alone"
    assert set(found.at_today.chosen) == {"fused", "bf16"}


def test_every_change_has_a_speed_or_the_reason_why_it_has_none() -> None:
    found, _ = raced(factors={**FAST, "checkpointing": 0.1}, step_seconds=lambda size: 0.1 + 0.001 * size)
    slow = next(row for row in found.rows if row.entry == ("checkpointing",))
    assert slow.rough_speed == pytest.approx(0.1, rel=0.1)
    others = [row for row in found.rows if row.entry != TODAY and row.speed is None and row.rough_speed is None]
    assert {row.reason for row in others} == {AT_OWN_SIZE}


def test_beside_other_programs_nothing_is_claimed_and_the_headline_says_so() -> None:
    found, _ = raced(factors=FAST, others_cores=0.9)
    assert not found.is_found
    assert found.headline.startswith("Nothing is claimed: other programs ran in ")
    assert all(row.speed is None for row in found.rows)
    table = "\n".join(table_of(found, None))
    assert "not known" in table
    assert "about" not in table
    assert is_short(f"BERT tiny: {found.headline}")


def test_where_the_time_ends_before_the_evaluation_nothing_is_claimed_and_no_other_size_is_searched() -> None:
    found, _ = raced(factors=FAST, ends_after=25)
    assert found.headline.startswith("Nothing is claimed: the time budget ended")
    assert (found.sizes, found.at_own_size) == ((), None)


@pytest.mark.parametrize("blocks", [0, 1, 3, 5])
def test_where_the_time_ends_before_the_first_round_each_change_says_so(blocks: int) -> None:
    found, _ = raced(factors=FAST, ends_after=blocks)
    assert found.rounds == ()
    assert found.headline.startswith("Nothing is claimed: the time budget ended")
    changes = [row for row in found.rows if row.entry != TODAY]
    assert {row.reason for row in changes} | {each.reason for each in found.not_tried} == {TIME_WAS_UP}
    assert len(changes) == max(blocks - 1, 0)  # the first block was of today's training
    assert len(changes) + len(found.not_tried) == 4


def test_todays_size_that_does_not_train_is_refused_with_a_remedy() -> None:
    with pytest.raises(WorkloadFailed, match="--current-batch-size"):
        raced(FasterSpec(model="bert-tiny", device="cpu", current_batch_size=64))


def test_the_document_and_the_table_hold_every_row() -> None:
    found, events = raced(factors=FAST)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["schema"] == 1
    assert {row["label"] for row in document["rows"]} == {row.label for row in found.rows}
    assert events[-1]["event"] == "result"
    table = "\n".join(table_of(found, None))
    assert "same to the bit" in table
    assert "pays after" not in table  # compiling is not faster here


def test_where_no_change_gets_ready_nothing_is_said_of_their_speeds() -> None:
    all_fail = frozenset({"fused", "bf16", "compile", "checkpointing"})
    found, _ = raced(fails=all_fail, step_seconds=lambda size: 0.1 * size)
    assert found.headline.startswith("Nothing is claimed: no change was compared")
    assert next(row.reason for row in found.rows if row.entry == TODAY) is None
