"""Where the data ends, the search goes straight there, and what runs then counts before a size is certified."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.facts.result import Outcome, Reason
from engine.search.stillness import Watched
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.notes.whole_run import Unseen
from engine.trainings.script.run import tune
from engine.trainings.script.sizes.next_start import DataEnd, seconds_of_a_start
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.whole_pass import steps_of_a_pass
from tests.engine.questions.answers.answers import keeps_its_boundary
from tests.engine.trainings.script.starts import Noted, tuned
from tests.engine.trainings.script.test_evidence import judged, marks_of, reading, steps

LIMIT = 1_000_000


def with_rows(rows: int, sizes: list[list[int]], *, peak: int = 900, **changes: Any) -> Reading:
    """What is noted of a training whose loader has this many rows."""
    marks = [[*mark, [], rows] if mark[1] == "batch" else mark for mark in marks_of(sizes)]
    ends = [[number, number] for number, mark in enumerate(marks) if mark[1] == "step"]
    events = [[2.5, 2, peak - 100, peak], [2.6, 2, 100 - peak, 100], *ends]
    return reading(sizes, marks=marks, events=events, python="3.11.7", **changes)


def dropping(rows: int, micro_batches: int, passes: int, bytes_a_sample: int = 10) -> Any:
    """A training that accumulates, and drops what is left of a pass over its rows."""

    def start(batch_size: int) -> Noted:
        count = passes * (rows // (batch_size * micro_batches))
        if count < 3:
            return [with_rows(rows, [[batch_size] * micro_batches] * count, ended="exit")], Ended(exit_status=0)
        made = with_rows(rows, steps(batch_size, micro_batches), peak=1000 + bytes_a_sample * batch_size)
        return [made], Ended(wall_seconds=1.0)

    return start


def test_a_training_of_4096_rows_and_two_micro_batches_takes_three_starts() -> None:
    started, found = tuned(dropping(4096, 2, passes=10), memory_limit_bytes=LIMIT)
    boundary = found.result.boundary
    assert started == [16, 2048, 2049]
    assert (boundary.largest_batch_size, boundary.certified, boundary.reason) == (2048, False, Reason.SIZE_LIMIT)
    assert boundary.refusal == "the data's 4,096 rows allow batches of up to 2,048, 2 micro-batches a step"
    assert keeps_its_boundary(found.to_dict())


@pytest.mark.parametrize(("passes", "largest"), [(1, 333), (2, 500), (3, 1000)])
def test_a_training_of_few_passes_needs_its_steps_in_them(passes: int, largest: int) -> None:
    started, found = tuned(dropping(1000, 1, passes), memory_limit_bytes=LIMIT)
    assert found.largest_batch_size == largest
    assert keeps_its_boundary(found.to_dict())
    assert len(started) <= 5


def test_memory_that_ends_before_the_data_is_certified_as_ever() -> None:
    _, found = tuned(dropping(100_000, 1, passes=3), memory_limit_bytes=5_000)
    assert (found.largest_batch_size, found.is_certified) == (400, True)


def test_a_script_that_breaks_above_its_rows_is_told_that_the_data_ends_there() -> None:
    trains = dropping(1000, 1, passes=3)

    def start(batch_size: int) -> Noted:
        if batch_size <= 1000:
            return trains(batch_size)
        broken = {"ended": "error", "error_type": "ZeroDivisionError", "error_message": "float division by zero"}
        return [with_rows(1000, [], **broken)], Ended(exit_status=1)

    started, found = tuned(start, memory_limit_bytes=LIMIT)
    assert started == [16, 1000, 1001]
    assert found.result.boundary.reason is Reason.SIZE_LIMIT
    assert found.result.boundary.refusal.endswith(
        "up to 1,000; ZeroDivisionError, in the script's own words: float division by zero"
    )
    assert [p.outcome for p in found.result.probes][-1] is Outcome.SIZE_LIMIT


def test_a_training_that_accumulates_over_passes_goes_on_beyond_one() -> None:
    def start(batch_size: int) -> Noted:
        return [with_rows(1000, steps(batch_size, 2), peak=1000 + 10 * batch_size)], Ended(wall_seconds=1.0)

    started, found = tuned(start, memory_limit_bytes=8_000)
    assert (found.largest_batch_size, found.is_certified) == (700, True)
    assert 501 in started


def test_loaders_that_differ_say_nothing_of_the_data() -> None:
    marks = [[0.0, "batch", True, [8], None, [], rows] for rows in (100, 200)]
    assert reading([], marks=marks).rows_of_a_pass is None
    assert reading([], marks=marks[:1]).rows_of_a_pass == 100


def test_a_pass_over_ready_made_batches_says_nothing_of_their_rows() -> None:
    marks = [[*m, [], 100, 1] if m[1] == "batch" else m for m in marks_of(steps(40))]
    assert judged([reading([], marks=marks)]).rows_of_a_pass is None
    rows = [[*m, [], 100, 40] if m[1] == "batch" else m for m in marks_of(steps(40))]
    assert judged([reading([], marks=rows)]).rows_of_a_pass == 100


def test_walls_are_sizes_with_one_two_and_three_steps_in_a_pass() -> None:
    assert DataEnd(1000, 1).walls == (1000, 500, 333)
    assert DataEnd(4096, 2).walls == (2048, 1024, 682)
    assert DataEnd(2, 1).walls == (2, 1)


def test_data_that_feeds_not_even_one_row_is_said_to() -> None:
    assert DataEnd(rows=3, micro_batches=4).describe(1) == "the data's 3 rows do not feed 1, 4 micro-batches a step"


def test_a_start_that_hangs_above_the_rows_is_the_end_of_the_data_and_not_waited_for() -> None:
    trains = dropping(1000, 1, passes=3)

    def start(batch_size: int) -> Noted:
        if batch_size <= 1000:
            return trains(batch_size)
        return [with_rows(1000, [], ended=None)], Ended(timed_out_after_seconds=14.0)

    started, found = tuned(start, memory_limit_bytes=LIMIT)
    assert started == [16, 1000, 1001]
    assert found.result.boundary.reason is Reason.SIZE_LIMIT
    assert "rows allow batches of up to 1,000; Timeout" in (found.result.boundary.refusal or "")
    earlier = [each.wall_seconds for each in found.result.probes]
    assert seconds_of_a_start(earlier, 900.0, is_fed=False) < 60.0 < seconds_of_a_start(earlier, 900.0)


EVALUATES = """
import sys
import torch
data = torch.utils.data.TensorDataset(torch.randn(6_000, 64))
loader = torch.utils.data.DataLoader(data, batch_size=int(sys.argv[1]), shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters())
for epoch in range(1_000):
    for (inputs,) in loader:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(20_000, 64))
    model.train()
"""


@pytest.mark.parametrize(
    ("batches", "watched", "step_seconds", "wanted"),
    [(31, 10, 0.1, 33), (31, 40, 0.1, None), (31, 10, 3.0, None), (500, 10, 0.01, None), (None, 10, 0.1, None)],
)
def test_a_pass_is_watched_where_its_end_is_near_and_was_not_seen(
    batches: int | None, watched: int, step_seconds: float, wanted: int | None
) -> None:
    seen = Watched(40, watched, step_seconds, is_varied=False, is_rising=False)
    evidence = replace(judged([reading(steps(40))]), unseen=Unseen(pass_batches=batches), watched=seen)
    assert steps_of_a_pass(evidence) == wanted


@pytest.mark.slow
def test_an_evaluation_at_the_end_of_a_pass_that_takes_more_is_told_in_place_of_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATES)
    command = (sys.executable, str(tmp_path / "train.py"), "{batch_size}")
    spec = TuneSpec(command, device="cpu", memory_limit_bytes=1 << 20, compare_speed=False)
    with pytest.raises(CommandUntunable, match="a pass over its data, with what the script does at its end, took"):
        tune(spec)
    roomy = tune(replace(spec, memory_limit_bytes=1 << 26, max_batch_size=256))
    assert roomy.largest_batch_size == 256
