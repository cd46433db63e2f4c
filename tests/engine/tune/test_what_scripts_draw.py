"""What detectors and adapters of public repositories draw and call is read as the batch that they train."""

from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.results.result import Outcome
from engine.tune.evidence import Evidence
from engine.tune.reading import Reading
from engine.tune.start.launch import Watching
from tests.engine.tune.starts import SCRIPTS, started
from tests.engine.tune.test_evidence import judged

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def read(name: str, size: int, *arguments: str, faster: dict[str, Any] | None = None) -> Reading:
    readings, _ = started(SCRIPTS / name, size, Watching(5, timed_steps=2, faster=faster), *arguments)
    (reading,) = [each for each in readings if each.has_trained]
    return reading


def detected(size: int, *arguments: str, honoured: frozenset[int] = frozenset()) -> Evidence:
    return judged([read("detector.py", size, *arguments)], size, limit_bytes=None, honoured=honoured)


def test_a_list_of_described_images_is_a_batch_of_as_many() -> None:
    found = detected(5, "described")
    assert (found.probe.outcome, found.batch_axis, found.micro_batches) == (Outcome.FITS, 0, 1)
    with pytest.raises(CommandUntunable, match="was given 5"):
        judged([read("detector.py", 5, "described")], 7, limit_bytes=None)


def test_boxes_that_come_before_the_images_hide_no_batch_nor_its_short_last_one() -> None:
    assert detected(20, "boxes").probe.outcome is Outcome.FITS
    beyond = detected(64, "boxes", honoured=frozenset({20}))
    assert (beyond.probe.outcome, beyond.most_samples) == (Outcome.SIZE_LIMIT, 50)


def test_the_adapters_of_a_model_in_evaluation_mode_are_no_models_of_their_own() -> None:
    faster = {"seed": 0, "set": {"bf16": True}, "is_trial": True, "environment": {"PYTHONHASHSEED": "0"}}
    found = read("adapters.py", 16, faster=faster).data["faster"]
    assert (found["models"], found["applied"]) == ([], [])
