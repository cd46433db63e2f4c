"""Ranks of one training end together, whatever each of them does."""

import sys
from functools import partial
from pathlib import Path

import pytest

from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.launch import Watching, start

SCRIPT = Path(__file__).parent / "scripts" / "ranks.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.mark.slow
def test_a_rank_whose_time_is_over_first_does_not_leave_the_other_waiting() -> None:
    command = (*TORCHRUN, str(SCRIPT), "--rank-late", "1", "--batch-size", "{batch_size}")
    begin = partial(begin_command, TuneSpec(command, device="cpu"))
    watching = Watching(5, timed_steps=1_000, timed_seconds=1.0)
    readings, ended = start(begin, 8, watching, seconds=300)
    assert sorted((each.rank, each.data["ended"]) for each in readings if each.has_trained) == [
        (0, "done"),
        (1, "done"),
    ]
    assert ended.timed_out_after_seconds is None
