"""PURE: decides the alternating starts of a command or function again: sizes, order, and verdict."""

from __future__ import annotations

from ..results.result import Purpose
from ..spec import RunSpec
from ..speed.comparison import Comparison
from ..speed.reasons import TOOK_LONG
from ..tune.alternating_starts import next_round, rounds_of, verdict
from ..tune.to_compare import sizes_to_compare
from .contradiction import Contradiction
from .document import Claims


def compare_starts_again(claims: Claims, facts: Comparison, largest: int) -> tuple[Comparison, list[Contradiction]]:
    """Return the comparison that the rounds show. Each must be the one that the starts before it called for.

    Fewer rounds are accepted, because the time budget may have ended: fewer than six pairs show nothing.
    """
    untimed = [p for p in claims.probes if p.purpose is not Purpose.TIMING]
    assert not isinstance(claims.spec, RunSpec)
    compared = sizes_to_compare(claims.spec, claims.device, untimed, largest)
    if isinstance(compared, str):
        return facts, [Contradiction("speed_rounds", len(claims.speed_rounds), f"none: {compared}")]
    rounds = rounds_of(claims.speed_rounds, claims.probes)
    for number, each in enumerate(rounds):
        step = next_round(compared, rounds[:number])
        wanted = None if step is None else [step.stage, list(step.sizes)]
        given = [each.stage, list(each.speeds)]
        if given != wanted:
            return facts, [Contradiction(f"speed_rounds[{number}]", given, wanted)]
    ended = None if TOOK_LONG.read(facts.reason or "") else facts.reason  # another early end cannot be recomputed
    others, cores = facts.others_cores, facts.cores
    found = verdict(compared, rounds, ended, seconds=facts.seconds, others_cores=others, cores=cores)
    return found, []
