"""PURE: the comparison of speeds, decided again from the rounds and the step times of a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from ..build_result import measured_points
from ..result import Boundary, Point, Probe, Purpose, Reason
from ..search.reserve import sizes_with_reserve
from ..spec import RunSpec
from ..speed.comparison import Comparison, candidates_of, concluded
from ..speed.selection import BLOCK_SECONDS, Candidates, Round, RunRound, decide
from ..speed_rounds import SpeedBlock
from ..stats import samples_per_second
from ..tune.turns import comparison_of, turns_of
from .contradiction import Contradiction, differences, is_same
from .document import Claims


def timings_of(claims: Claims) -> dict[int, tuple[int, Probe]]:
    """Return the timing probe of each size, with its place among the probes."""
    return {p.batch_size: (n, p) for n, p in enumerate(claims.probes) if p.purpose is Purpose.TIMING}


def compare_again(claims: Claims, boundary: Boundary) -> tuple[Comparison, list[Contradiction]]:
    """Return the comparison that the rounds show, and the untrue claims in rounds and timing probes.

    The comparison's other figures (seconds, other work) cannot be recomputed and are taken from the document.
    """
    facts = _facts(claims)
    wrong = [*_untrue_blocks(claims)]
    points = {}
    if (
        boundary.largest_batch_size
        and claims.spec.check_batch_size is None
        and boundary.reason is not Reason.TIME_BUDGET
    ):
        untimed = [p for p in claims.probes if p.purpose is not Purpose.TIMING]
        points = measured_points(untimed, claims.device, boundary.largest_batch_size)
    if strange := set(facts.left_out) - points.keys():
        wrong.append(Contradiction("speed.left_out_batch_sizes", sorted(strange), sorted(points)))
    if claims.speed_rounds and not points:
        wrong.append(Contradiction("speed_rounds", len(claims.speed_rounds), "none: there was nothing to compare"))
    if wrong or not claims.speed_rounds:
        return facts, wrong
    keeping = sizes_with_reserve(points, claims.limit_bytes, claims.spec.reserve_fraction)
    if claims.training is not None:
        return _of_turns(claims, facts, points, keeping)
    cores = (claims.speed.cores if claims.speed else None) or 1
    candidates = candidates_of(points, keeping, claims.spec.current_batch_size, cores)
    for size in facts.left_out:
        candidates = candidates.without(size)
    found, wrong = _of_rounds(claims, facts, candidates)
    return found, wrong or [*_untrue_speeds(claims, found)]


def _facts(claims: Claims) -> Comparison:
    """Return a comparison without a verdict, and what the document says of its circumstances."""
    if (speed := claims.speed) is None:
        return Comparison(is_measurable=False, reason="the speeds were not compared")
    reason = speed.reason or "the rounds show no verdict"
    return Comparison(
        is_measurable=False,
        reason=reason,
        seconds=speed.seconds,
        others_cores=speed.others_cores,
        cores=speed.cores,
        left_out=speed.left_out_batch_sizes,
        method=speed.method,
    )


def _untrue_blocks(claims: Claims) -> Iterator[Contradiction]:
    """Yield blocks whose steps are not in the timing probe, or have another median, or took longer than their round."""
    timings, used = timings_of(claims), dict[int, int]()
    if len(timings) < sum(p.purpose is Purpose.TIMING for p in claims.probes):
        yield Contradiction("probes", "a size with two timing probes", "one for each size")
    for number, each in enumerate(claims.speed_rounds):
        steps_seconds = 0.0
        for place, block in enumerate(each.blocks):
            path = f"speed_rounds[{number}].blocks[{place}]"
            micro_batches = _micro_batches(claims, block.batch_size, block.micro_batches)
            if block.micro_batches != micro_batches:
                yield Contradiction(f"{path}.micro_batches", block.micro_batches, micro_batches)
            steps = _steps_of(block, timings)
            if not steps or block.first_step < used.get(block.batch_size, 0):
                yield Contradiction(f"{path}.first_step", block.first_step, "steps of the timing probe, each once")
                continue
            used[block.batch_size] = block.first_step + block.steps
            steps_seconds += sum(steps)
            yield from differences(f"{path}.step_seconds", block.step_seconds, median(steps), may_claim_less=False)
        # a block ends no sooner; it also bounds the rounds that can be decided on
        least_seconds = 0.0 if claims.training else BLOCK_SECONDS[each.stage] * len(each.blocks)
        if each.seconds < least_seconds * (1 - 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, least_seconds)
        if steps_seconds > each.seconds * (1 + 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, steps_seconds)


def _micro_batches(claims: Claims, batch_size: int, unknown: int) -> int:
    """Return the batches of a step, of all ranks.

    Of a command they are those of the start that measured the size's memory; `unknown` where that timed no step.
    """
    if isinstance(claims.spec, RunSpec):
        return claims.spec.accumulation_steps
    own = [p for p in claims.probes if p.batch_size == batch_size and p.purpose is not Purpose.TIMING]
    samples = [(p.samples_per_second or 0.0) * (p.step_seconds or 0.0) for p in own]
    return max((round(each / batch_size) for each in samples), default=0) or unknown


def _steps_of(block: SpeedBlock, timings: Mapping[int, tuple[int, Probe]]) -> Sequence[float]:
    """Return the steps of a block; empty where the timing probe has not as many."""
    _, probe = timings.get(block.batch_size, (0, None))
    if probe is None or block.first_step < 0 or block.steps < 1:
        return ()
    steps = probe.timed_step_seconds[block.first_step : block.first_step + block.steps]
    return steps if len(steps) == block.steps else ()


def _of_rounds(claims: Claims, facts: Comparison, candidates: Candidates) -> tuple[Comparison, list[Contradiction]]:
    """Decide again. Each round must be the one that those before it called for: none is left out of the document."""
    rounds = [Round.from_stored(each) for each in claims.speed_rounds]
    if facts.left_out:  # earlier rounds were decided with the sizes that dropped out since
        strange = {b.batch_size for r in rounds for b in r.blocks} - set(candidates.sizes)
        if strange or not candidates.sizes:
            return facts, [Contradiction("speed_rounds", sorted(strange), "sizes that trained")]
    else:
        for number, each in enumerate(rounds):
            step = decide(candidates, rounds[:number])
            given = (each.stage, sorted(b.batch_size for b in each.blocks))
            wanted = (step.stage, sorted(step.sizes)) if isinstance(step, RunRound) else ("none: it was decided", [])
            if given != wanted:
                return facts, [Contradiction(f"speed_rounds[{number}]", list(given), list(wanted))]
    try:
        step = decide(candidates, rounds)
    except (KeyError, IndexError, ValueError):
        return facts, [Contradiction("speed_rounds", "rounds of other sizes", "rounds that a decision can rest on")]
    return (facts if isinstance(step, RunRound) else concluded(replace(facts, reason=None), step)), []


def _untrue_speeds(claims: Claims, found: Comparison) -> Iterator[Contradiction]:
    """Yield timing probes whose speed is not that of the comparison, or not that of their steps where none was made."""
    speeds = {**found.rough, **{size: speed.value for size, speed in found.speeds.items()}}
    for size, (number, probe) in timings_of(claims).items():
        path = f"probes[{number}].samples_per_second"
        if found.is_measurable and size in speeds:
            yield from differences(path, probe.samples_per_second, speeds[size], may_claim_less=False)
        elif (claimed := probe.samples_per_second) is not None and probe.timed_step_seconds:
            samples = size * _micro_batches(claims, size, 1)
            slowest, fastest = (samples_per_second(samples, pick(probe.timed_step_seconds)) for pick in (max, min))
            if not slowest * (1 - 1e-6) <= claimed <= fastest * (1 + 1e-6):
                yield Contradiction(path, claimed, [slowest, fastest])


def _of_turns(
    claims: Claims, facts: Comparison, points: Mapping[int, Point], keeping: frozenset[int]
) -> tuple[Comparison, list[Contradiction]]:
    """Compare the pairs of starts of a command again."""
    today, other = claims.spec.current_batch_size, max(keeping)
    timings = timings_of(claims)
    pairs = []
    for number, each in enumerate(claims.speed_rounds):
        blocks = {block.batch_size: block for block in each.blocks}
        order = [today, other] if number % 2 == 0 else [other, today]
        if list(blocks) != order:
            return facts, [Contradiction(f"speed_rounds[{number}].blocks", list(blocks), order)]
        pairs.append((_mean_speed(blocks[today], timings), _mean_speed(blocks[other], timings)))
    turns = turns_of(today, other, pairs)
    may_keep_today = today in keeping and today < other and today in points
    found = comparison_of(turns, facts.reason, may_keep_today=may_keep_today, seconds=facts.seconds)
    wrong = [*_untrue_speeds(claims, found)]
    claimed = claims.training.turns if claims.training else None
    if claimed is None or not is_same(claimed.get("pairs"), turns.pairs):
        wrong.append(Contradiction("training.turns.pairs", None if claimed is None else claimed.get("pairs"), pairs))
    return found, wrong


def _mean_speed(block: SpeedBlock, timings: Mapping[int, tuple[int, Probe]]) -> float:
    steps = _steps_of(block, timings)
    return block.batch_size * block.micro_batches / fmean(steps) if steps else math.nan
