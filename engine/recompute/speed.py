"""PURE: the comparison of speeds, decided again from the rounds and the step times of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from ..build_result import measured_points
from ..results.result import Boundary, Probe, Purpose, Reason
from ..results.speed_rounds import SpeedBlock
from ..results.stats import samples_per_second
from ..search.reserve import sizes_with_reserve
from ..spec import RunSpec
from ..speed.comparison import Comparison, candidates_of, concluded
from ..speed.rounds import Candidates, Round, RunRound
from ..speed.selection import BLOCK_SECONDS, SpeedVerdict, replay
from .contradiction import Contradiction, differences
from .document import Claims
from .turns import compare_starts_again
from .words import is_possible_reason


def timings_of(claims: Claims) -> dict[int, tuple[int, Probe]]:
    """Return the timing probe of each size, with its index among the probes."""
    return {p.batch_size: (n, p) for n, p in enumerate(claims.probes) if p.purpose is Purpose.TIMING}


def compare_again(claims: Claims, boundary: Boundary) -> tuple[Comparison, list[Contradiction]]:
    """Return the comparison that the rounds show, and the false claims in rounds and timing probes.

    The comparison's other figures (seconds, other work) cannot be recomputed and are taken from the document.
    """
    facts = _facts(claims, boundary.largest_batch_size or 0)
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
    if claims.training is not None:
        found, wrong = compare_starts_again(claims, facts, boundary.largest_batch_size or 0)
        return found, wrong or [*_untrue_speeds(claims, found)]
    keeping = sizes_with_reserve(points, claims.limit_bytes, claims.spec.reserve_fraction)
    cores = (claims.speed.cores if claims.speed else None) or 1
    is_cpu = claims.device.kind == "cpu"
    candidates = candidates_of(points, keeping, claims.spec.current_batch_size, cores, shares_cores=is_cpu)
    found, wrong = _of_rounds(claims, facts, candidates)
    return found, wrong or [*_untrue_speeds(claims, found)]


def _facts(claims: Claims, largest: int) -> Comparison:
    """Return a comparison without a verdict, with the conditions that the document claims."""
    if (speed := claims.speed) is None:
        return Comparison(reason="the speeds were not compared")
    return Comparison(
        reason=speed.reason if is_possible_reason(claims, largest) else "a reason that the starts and rounds show",
        seconds=speed.seconds,
        others_cores=speed.others_cores,
        cores=speed.cores,
        left_out=speed.left_out_batch_sizes,
        method=speed.method,
    )


def _untrue_blocks(claims: Claims) -> Iterator[Contradiction]:
    """Yield blocks whose steps are not in the timing probe, have another median, or took longer than their round."""
    timings, used = timings_of(claims), dict[int, int]()
    if len(timings) < sum(p.purpose is Purpose.TIMING for p in claims.probes):
        yield Contradiction("probes", "a size with two timing probes", "one for each size")
    for number, each in enumerate(claims.speed_rounds):
        steps_seconds = 0.0
        for place, block in enumerate(each.blocks):
            path = f"speed_rounds[{number}].blocks[{place}]"
            micro_batches = _micro_batches(claims, block.batch_size, block.micro_batches)
            if block.micro_batches != max(micro_batches, 1):
                yield Contradiction(f"{path}.micro_batches", block.micro_batches, max(micro_batches, 1))
            steps = _steps_of(block, timings)
            if not steps or block.first_step < used.get(block.batch_size, 0):
                yield Contradiction(f"{path}.first_step", block.first_step, "steps of the timing probe, each once")
                continue
            used[block.batch_size] = block.first_step + block.steps
            steps_seconds += sum(steps)
            yield from differences(f"{path}.step_seconds", block.step_seconds, median(steps), may_claim_less=False)
        # no block ends sooner; this also bounds the number of rounds
        least_seconds = 0.0 if claims.training else BLOCK_SECONDS[each.stage] * len(each.blocks)
        if each.seconds < least_seconds * (1 - 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, least_seconds)
        if steps_seconds > each.seconds * (1 + 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, steps_seconds)


def _micro_batches(claims: Claims, batch_size: int, unknown: int) -> int:
    """Return the batches of a step over all ranks.

    For a command they are those of the start that measured the size's memory; `unknown` where that timed no step.
    """
    if isinstance(claims.spec, RunSpec):
        return claims.spec.accumulation_steps
    own = [p for p in claims.probes if p.batch_size == batch_size and p.purpose is not Purpose.TIMING]
    samples = [(p.samples_per_second or 0.0) * (p.step_seconds or 0.0) for p in own]
    return max((round(each / batch_size) for each in samples), default=0) or unknown


def _steps_of(block: SpeedBlock, timings: Mapping[int, tuple[int, Probe]]) -> Sequence[float]:
    """Return the steps of a block; empty where the timing probe does not have all of them."""
    _, probe = timings.get(block.batch_size, (0, None))
    if probe is None or block.first_step < 0 or block.steps < 1:
        return ()
    steps = probe.timed_step_seconds[block.first_step : block.first_step + block.steps]
    return steps if len(steps) == block.steps else ()


def _of_rounds(claims: Claims, facts: Comparison, candidates: Candidates) -> tuple[Comparison, list[Contradiction]]:
    """Decide again. Each round must be the one that those before it called for, so that the document omits none."""
    rounds = [Round.from_stored(each) for each in claims.speed_rounds]
    gone = sorted(each.left_out for each in rounds if each.left_out is not None)
    if gone != sorted(facts.left_out):
        return facts, [Contradiction("speed.left_out_batch_sizes", sorted(facts.left_out), gone)]
    decisions = replay(candidates, rounds)
    try:
        for number, (each, step) in enumerate(zip(rounds, decisions, strict=False)):
            if (wanted := _not_called_for(each, step)) is not None:
                return facts, [Contradiction(f"speed_rounds[{number}]", _described(each), wanted)]
        step = next(decisions)
    except (KeyError, IndexError, ValueError):
        return facts, [Contradiction("speed_rounds", "rounds of other sizes", "rounds that a decision can rest on")]
    return (concluded(replace(facts, reason=None), step) if isinstance(step, SpeedVerdict) else facts), []


def _not_called_for(given: Round, step: RunRound | SpeedVerdict | None) -> list[Any] | str | None:
    """Return what was called for instead of this round; None where this round was called for.

    Where a size was left out, some of the others were run before it, and the size itself was called for.
    """
    if not isinstance(step, RunRound):
        return "none: it was decided"
    sizes = sorted(b.batch_size for b in given.blocks)
    is_cut_short = given.left_out in step.sizes and {*sizes} <= {*step.sizes} - {given.left_out}
    is_whole = given.left_out is None and sizes == sorted(step.sizes)
    is_called_for = given.stage is step.stage and (is_whole or is_cut_short)
    return None if is_called_for else [step.stage, sorted(step.sizes)]


def _described(given: Round) -> list[Any]:
    sizes = sorted(b.batch_size for b in given.blocks)
    return [given.stage, sizes] if given.left_out is None else [given.stage, sizes, f"left out: {given.left_out}"]


def _untrue_speeds(claims: Claims, found: Comparison) -> Iterator[Contradiction]:
    """Yield timing probes whose speed is not the comparison's, or without a comparison not that of their steps."""
    speeds = {**found.rough, **{size: speed.value for size, speed in found.speeds.items()}}
    for size, (number, probe) in timings_of(claims).items():
        path = f"probes[{number}].samples_per_second"
        if found.is_measurable and size in speeds:
            yield from differences(path, probe.samples_per_second, speeds[size], may_claim_less=False)
        elif (claimed := probe.samples_per_second) is not None and probe.timed_step_seconds:
            samples = size * _micro_batches(claims, size, 1)
            if claims.training is not None:
                yield from differences(path, claimed, samples / fmean(probe.timed_step_seconds))
                continue
            slowest, fastest = (samples_per_second(samples, pick(probe.timed_step_seconds)) for pick in (max, min))
            if not slowest * (1 - 1e-6) <= claimed <= fastest * (1 + 1e-6):
                yield Contradiction(path, claimed, [slowest, fastest])
