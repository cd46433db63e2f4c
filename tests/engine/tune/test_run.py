"""The search over starts, with starts that are made up."""

import pytest

from engine.errors import WorkloadFailed
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec

REFUSED = {"pid": 1, "rank": 0, "world_size": 1, "ended": "error", "device": None, "held": [], "events": [], "card": {}}
REFUSED |= {"error_type": "OutOfMemoryError", "error_message": "CUDA out of memory", "python": "3.11.7"}
REFUSED |= {"marks": [[0.0, "armed", "2.13.0", ["train.py"]]]}


def test_a_command_that_runs_out_of_memory_before_any_step_fails_with_what_it_said(monkeypatch) -> None:
    monkeypatch.setattr(run, "start", lambda *_, **__: ([Reading(REFUSED)], Ended(exit_status=1)))
    with pytest.raises(WorkloadFailed, match="came to no optimizer step: OutOfMemoryError: CUDA out of memory"):
        run.tune(TuneSpec(("python", "train.py", "{batch_size}")))
