"""PURE: how many more rounds a comparison of speeds should take, and how long: the decision itself is played on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...facts.speed_rounds import SpeedRound
from .evaluation import LOOK_EVERY
from .rounds import Candidates, NextRound
from .selection import BLOCK_SECONDS, SELECTION_ROUNDS, decide

_ROUNDS_A_LOOK = 15


@dataclass(frozen=True, slots=True)
class Outlook:
    rounds: int
    seconds: float


def outlook(rounds: Sequence[SpeedRound], candidates: Candidates) -> Outlook | None:
    """Return what is expected to follow these rounds; None while they are too few, or a size was not timed yet."""
    whole, played, seconds = [r for r in rounds if r.left_out is None], list(rounds), 0.0
    if len(whole) < SELECTION_ROUNDS:
        return None
    while isinstance(step := decide(candidates, played), NextRound):
        done = sum(r.stage is step.stage for r in played)
        # the decision is asked at some of its looks alone: of many rounds each one takes milliseconds
        able = [r for r in whole if {b.batch_size for b in r.blocks} >= {*step.entries}]
        if not able:
            return None
        for _ in range(LOOK_EVERY * (1 + done // _ROUNDS_A_LOOK) - done % LOOK_EVERY):
            played.append(_like(able, step, len(played)))
            seconds += played[-1].seconds
    return Outlook(len(played) - len(rounds), seconds)


def _like(rounds: Sequence[SpeedRound], step: NextRound[int], number: int) -> SpeedRound:
    """Return the blocks of a round that had all sizes of this one, if possible of its stage; each in its turn."""
    of_stage = [r for r in rounds if r.stage is step.stage] or rounds
    like = of_stage[number % len(of_stage)]
    blocks = tuple(b for b in like.blocks if b.batch_size in step.entries)
    longer = BLOCK_SECONDS[step.stage] - BLOCK_SECONDS[like.stage]
    return SpeedRound(step.stage, len(blocks) * (like.seconds / len(like.blocks) + longer), blocks)
