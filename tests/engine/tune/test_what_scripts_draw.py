"""What detectors and adapters of public repositories draw and call is read as the batch that they train."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.results.result import Outcome
from engine.tune.evidence import Ended, Evidence, evidence_of
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.launch import Watching, start

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

SCRIPTS = Path(__file__).parent / "scripts"


def started(name: str, size: int, *arguments: str, faster: dict[str, Any] | None = None) -> Reading:
    command = (sys.executable, str(SCRIPTS / name), "{batch_size}", *arguments)
    begin = partial(begin_command, TuneSpec(command, device="cpu"))
    (reading,) = [
        each
        for each in start(begin, size, Watching(5, timed_steps=2, faster=faster), seconds=300)[0]
        if each.has_trained
    ]
    return reading


def judged(size: int, *arguments: str, honoured: frozenset[int] = frozenset()) -> Evidence:
    read = started("detector.py", size, *arguments)
    return evidence_of([read], Ended(), size, limit_bytes=None, batch="template", honoured=honoured)


def test_a_list_of_described_images_is_a_batch_of_as_many() -> None:
    found = judged(5, "described")
    assert (found.probe.outcome, found.batch_axis, found.micro_batches) == (Outcome.FITS, 0, 1)
    with pytest.raises(CommandUntunable, match="was given 5"):
        evidence_of(
            [started("detector.py", 5, "described")], Ended(), 7, limit_bytes=None, batch="template", honoured=()
        )


def test_boxes_that_come_before_the_images_hide_no_batch_nor_its_short_last_one() -> None:
    assert judged(20, "boxes").probe.outcome is Outcome.FITS
    beyond = judged(64, "boxes", honoured=frozenset({20}))
    assert (beyond.probe.outcome, beyond.most_samples) == (Outcome.SIZE_LIMIT, 50)


def test_the_adapters_of_a_model_in_evaluation_mode_are_no_models_of_their_own() -> None:
    faster = {"seed": 0, "set": {"bf16": True}, "is_trial": True, "environment": {"PYTHONHASHSEED": "0"}}
    found = started("adapters.py", 16, faster=faster).data["faster"]
    assert (found["models"], found["applied"]) == ([], [])
