"""What a result holds of the comparison of speeds: its rounds, so that others can repeat the decision.

The step times themselves are in the timing probe of each size, once; a block of a round says which of them are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """What a round is for: to choose the sizes that are compared, or to compare them."""

    SELECTION = "selection"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class SpeedBlock:
    """Steps of one size, run one after the other within a round.

    `step_seconds` is their median. The `steps` themselves are `timed_step_seconds` of the size's timing probe, from
    `first_step` on, counted from 0. A step has `micro_batches` of `batch_size` samples each, of all ranks.
    `others_cores` is what other work used meanwhile; None where it is unknown.
    """

    batch_size: int
    step_seconds: float
    first_step: int
    steps: int
    others_cores: float | None = None
    micro_batches: int = 1


@dataclass(frozen=True, slots=True)
class SpeedRound:
    """One block of each size in the running, in the order in which they were run. `seconds` is all the time it took."""

    stage: Stage
    seconds: float
    blocks: tuple[SpeedBlock, ...]
