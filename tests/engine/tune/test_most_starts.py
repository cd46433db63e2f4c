"""A search ends, whatever the script does: trainings that fit, fail, hang, exit, lack rows and vary at any size."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import CommandUntunable, WorkloadFailed
from engine.results.result import Outcome, Purpose
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.next_start import MOST_STARTS
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from tests.engine.answers.answers import keeps_its_boundary
from tests.engine.tune.test_evidence import marks_of, reading, steps

TROUBLES = ("error", "names a size", "names sizes", "names numbers", "hangs", "exits", "ends by itself", "lacks rows")
PLACES = ("nowhere", "above", "not a multiple", "anywhere")


class MadeUp:
    """A training of 100 bytes a sample and 2,000 beside, with trouble at some sizes; nothing is executed.

    `percent`: what each of its starts takes of that, in turn.
    """

    def __init__(self, trouble: str, place: str, at: int, percent: list[int], seed: int, *, is_varied: bool) -> None:
        self.trouble, self.place, self.at, self.percent, self.seed = trouble, place, at, percent, seed
        self.is_varied = is_varied
        self.started: list[int] = []

    def is_in_trouble(self, size: int) -> bool:
        if self.place == "above":
            return size > self.at
        if self.place == "not a multiple":
            return size % (self.at % 12 + 1) != 0
        return self.place == "anywhere" and random.Random(f"{self.seed} {size}").random() < 0.5

    def __call__(self, _: object, size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        self.started.append(size)
        if self.is_in_trouble(size):
            return self.end(size)
        marks = marks_of(steps(size))
        for length, mark in enumerate(mark for mark in marks if mark[1] == "forward"):
            mark[3] = [size, 20 + length if self.is_varied else 20]
        peak = 2_000 + size * self.percent[len(self.started) % len(self.percent)]
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=10.0)

    def end(self, size: int) -> tuple[list[Reading], Ended]:
        draw = random.Random(f"{self.seed} {size} numbers")
        if self.trouble == "hangs":
            return [reading([], ended=None, python="3.11.7")], Ended(timed_out_after_seconds=120.0, wall_seconds=120.0)
        if self.trouble == "exits":
            return [], Ended(exit_status=3, last_lines=f"loss {draw.random()}", wall_seconds=1.0)
        if self.trouble == "ends by itself":
            return [reading([[size]], ended="exit", python="3.11.7")], Ended(exit_status=0, wall_seconds=1.0)
        if self.trouble == "lacks rows":
            return [reading([], ended="error", python="3.11.7", error_type="NoBatch", empty_passes=[8, 900])], Ended(
                exit_status=1
            )
        numbers = [draw.randrange(1, 4_000) for _ in range(30)]
        said = {
            "error": "no",
            "names a size": f"at most {numbers[0]}",
            "names sizes": "choose from 16, 24, 48, 96, 192",
        }
        message = said.get(self.trouble, f"shapes {numbers}")
        return [reading([], ended="error", python="3.11.7", error_type="ValueError", error_message=message)], Ended(
            exit_status=1
        )


made_up = st.builds(
    MadeUp,
    st.sampled_from(TROUBLES),
    st.sampled_from(PLACES),
    st.integers(8, 3_000),
    st.lists(st.integers(60, 140), min_size=1, max_size=5),
    st.integers(0, 9),
    is_varied=st.booleans(),
)
RULES = st.sampled_from([None, "multiple of 8", "power of two", "divisor of 480", "16, 24, 40, 768"])


@settings(max_examples=60, deadline=None)
@example(MadeUp("error", "anywhere", 8, [60], 1, is_varied=True), None, 100, 4)
@example(MadeUp("error", "anywhere", 8, [60, 112], 3, is_varied=True), "multiple of 8", 16, 4)
@given(made_up, RULES, st.sampled_from([1, 16, 100]), st.integers(3, 6))
def test_a_search_ends_after_its_most_starts_and_what_it_claims_is_shown(
    script: MadeUp, sizes: str | None, today: int, digits: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.tune.speed.seats.start", script)
        limits: dict[str, Any] = {"memory_limit_bytes": 10**digits, "compare_speed": False, "sizes": sizes}
        try:
            found = run.tune(TuneSpec(("python", "train.py", "{batch_size}"), current_batch_size=today, **limits))
        except (CommandUntunable, WorkloadFailed):
            assert len(script.started) <= MOST_STARTS
            return
    searched = [p for p in found.result.probes if p.purpose is not Purpose.CURVE]
    assert len(searched) <= MOST_STARTS
    failed = Counter(p.batch_size for p in searched if p.outcome is Outcome.ERROR)
    assert max(failed.values(), default=0) <= 2, "a size that failed is started again for the same reason"
    if found.is_certified and found.largest_batch_size:
        of_largest = [p.outcome for p in searched if p.batch_size == found.largest_batch_size]
        assert {*of_largest} == {Outcome.FITS}
        assert len(of_largest) >= (3 if script.is_varied else 1)
    document = json.loads(json.dumps(found.to_dict()))
    assert keeps_its_boundary(document)
