"""PURE: the comparison of speeds, decided again from the rounds and the step times of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from ..build_result import measured_points
from ..results.result import Boundary, Probe, Purpose, Reason
from ..results.speed_rounds import SpeedBlock, SpeedClaim
from ..speed.comparison import Comparison, says_nothing
from .claims import Claims
from .contradiction import Contradiction, differences


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
    found, wrong = claims.compare(facts, points, boundary.largest_batch_size or 0)
    if found.claim is SpeedClaim.AHEAD and claims.speed is not None and claims.speed.claim is not SpeedClaim.AHEAD:
        why = claims.speed.reason or ""
        if says_nothing(why):  # of an earlier build, which claimed no order
            found = replace(found, claim=SpeedClaim.NOTHING, reason=why, recommended=None)
    return found, wrong or [*_untrue_speeds(claims, found)]


def _facts(claims: Claims, largest: int) -> Comparison:
    """Return a comparison without a verdict, with the conditions that the document claims."""
    if (speed := claims.speed) is None:
        return Comparison(reason="the speeds were not compared")
    return Comparison(
        reason=speed.reason
        if claims.may_have_reason(speed.reason or "", largest)
        else "a reason that the starts and rounds show",
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
            micro_batches = claims.micro_batches(block.batch_size, block.micro_batches)
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
        least_seconds = claims.least_seconds(each)
        if each.seconds < least_seconds * (1 - 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, least_seconds)
        if steps_seconds > each.seconds * (1 + 1e-6):
            yield Contradiction(f"speed_rounds[{number}].seconds", each.seconds, steps_seconds)


def _steps_of(block: SpeedBlock, timings: Mapping[int, tuple[int, Probe]]) -> Sequence[float]:
    """Return the steps of a block; empty where the timing probe does not have all of them."""
    _, probe = timings.get(block.batch_size, (0, None))
    if probe is None or block.first_step < 0 or block.steps < 1:
        return ()
    steps = probe.timed_step_seconds[block.first_step : block.first_step + block.steps]
    return steps if len(steps) == block.steps else ()


def _untrue_speeds(claims: Claims, found: Comparison) -> Iterator[Contradiction]:
    """Yield timing probes whose speed is not the comparison's, or without a comparison not that of their steps."""
    speeds = {**found.rough, **{size: speed.value for size, speed in found.speeds.items()}}
    for size, (number, probe) in timings_of(claims).items():
        path = f"probes[{number}].samples_per_second"
        if found.is_measurable and size in speeds:
            yield from differences(path, probe.samples_per_second, speeds[size], may_claim_less=False)
        elif (claimed := probe.samples_per_second) is not None and probe.timed_step_seconds:
            samples = size * claims.micro_batches(size, 1)
            yield from claims.untrue_speed(path, claimed, samples, probe.timed_step_seconds)
