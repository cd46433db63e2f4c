"""One size of a training whose ranks are emulated: a start for each of them, and what these may say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...machine.scratch import scratch_folder
from ...ranks.emulation import EmulatedRank
from ..judge.evidence import Ended
from ..judge.reading import Reading
from .launch import Watching


def start_ranks(
    once: Callable[..., tuple[list[Reading], Ended]],
    watching: Watching,
    ranks: Sequence[EmulatedRank],
    *,
    seconds: float,
) -> tuple[list[Reading], Ended]:
    """Start the training as each of these ranks, or once as it is without any; a rank that fails to train ends it."""
    if not ranks:
        return once(watching, seconds=seconds)
    readings: list[Reading] = []
    wall_seconds, training = 0.0, 0
    with scratch_folder() as folder:
        for rank in ranks:
            as_rank = replace(watching, timed_steps=0, emulated=replace(rank, folder=folder))
            found, ended = once(as_rank, seconds=seconds - wall_seconds)
            readings += found
            wall_seconds += ended.wall_seconds
            training = max(training, sum(each.is_done for each in found), ended.seen.training if ended.seen else 0)
            if not any(each.is_done for each in found) or any(each.has_failed for each in found):
                break
    if ended.seen is not None:
        ended = replace(ended, seen=replace(ended.seen, training=training))
    return readings, replace(ended, wall_seconds=wall_seconds)
