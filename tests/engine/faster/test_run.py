"""A race of a catalogue model's settings, with a worker whose speeds and losses are made up."""

import json
from typing import Any

import pytest

from engine.cli.faster import lines_to_paste, table_of
from engine.errors import TimeIsUp, WorkerFailed, WorkloadFailed
from engine.faster.result import FasterResult
from engine.faster.run import race
from engine.faster.spec import FasterSpec
from engine.race.field import TODAY
from engine.race.numbers import Sameness
from engine.results.losses import Losses
from engine.results.result import Outcome, Probe
from engine.results.speed_rounds import SpeedClaim
from engine.spec import RunSpec
from engine.speed.comparison import TimedBlock
from tests.engine.fake_worker import FakeWorker

LOSSES = (2.0, 1.5, 1.2, 1.1, 1.0)


class FakeRacer(FakeWorker):
    """Steps of `factors` by setting; `losses_of` has those that differ, `fails` the settings that raise."""

    def __init__(self, **changed: Any) -> None:
        self.factors: dict[str, float] = changed.pop("factors", {})
        self.losses_of: dict[str, tuple[float, ...]] = changed.pop("losses_of", {})
        self.fails: frozenset[str] = changed.pop("fails", frozenset())
        self.spec: RunSpec | None = None
        self.blocks = 0
        self.ends_after: int = changed.pop("ends_after", 10_000)
        super().__init__(changed.pop("boundary", 16), **changed)

    def turn_to(self, spec: RunSpec) -> None:
        self.close()
        self.spec = spec

    def _made(self) -> set[str]:
        made = {"fused": self.spec.optimizer == "adamw-fused", "bf16": self.spec.precision == "bf16"}  # type: ignore[union-attr]
        made |= {"compile": self.spec.torch_compile, "checkpointing": self.spec.gradient_checkpointing}  # type: ignore[union-attr]
        return {name for name, is_made in made.items() if is_made}

    def time(self, batch_size: int, **_: Any) -> TimedBlock:
        self.blocks += 1
        if self.blocks > self.ends_after:
            raise TimeIsUp
        made = self._made()
        if made & self.fails:
            raise WorkerFailed("the worker process ended with status -11")
        step = self.step_seconds(batch_size)
        for name in made:
            step /= self.factors.get(name, 1.0)
        step *= 1 + 0.002 * (self.blocks % 5)
        conditions = {"others_cores": self.others_cores, **({"compile_seconds": 12.0} if "compile" in made else {})}
        return TimedBlock(batch_size, Outcome.FITS, (step,), step, conditions)

    def losses(self, batch_size: int, **_: Any) -> Losses:
        if batch_size > 16:
            return Losses(Outcome.OUT_OF_MEMORY, error_type="BudgetExceeded", error_message="out of memory")
        return Losses(
            Outcome.FITS, next((self.losses_of[name] for name in self._made() & self.losses_of.keys()), LOSSES)
        )

    def probe(self, batch_size: int, **asked: Any) -> Probe:
        asked.setdefault("progress", lambda *_: None)
        return super().probe(batch_size, **asked)


def raced(spec: FasterSpec | None = None, **changed: Any) -> tuple[FasterResult, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    spec = spec or FasterSpec(
        model="bert-tiny", device="cpu", tried="fused,bf16,compile,checkpointing", current_batch_size=4
    )
    return race(spec, events.append, worker=FakeRacer(**changed), started_as={}), events


FAST = {"fused": 1.3, "bf16": 1.5, "checkpointing": 0.8}


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


def test_nothing_found_is_an_answer() -> None:
    found, _ = raced(step_seconds=lambda size: 0.1 * size)
    assert (found.chosen, found.chosen_batch_size, found.is_found) == (TODAY, 4, False)
    assert found.headline.startswith("Nothing found")


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


def test_beside_other_programs_nothing_is_claimed_and_the_headline_says_so() -> None:
    found, _ = raced(factors=FAST, others_cores=0.9)
    assert not found.is_found
    assert found.headline.startswith("Nothing is claimed: other programs used 0.9")


def test_where_the_time_ends_before_the_evaluation_nothing_is_claimed() -> None:
    found, _ = raced(factors=FAST, ends_after=25)
    assert found.headline.startswith("Nothing is claimed: the time budget ended")


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
