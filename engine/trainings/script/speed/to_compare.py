"""PURE: which sizes are compared with today's, by the speeds of the starts of the search.

Speeds of single starts are too uncertain to advise anything, but show where the curve bends: from some size on, more
samples make a step longer in proportion and training no faster. A size at that bend trains about as fast as one that
takes several times the memory. So it is compared, with the largest that keeps the reserve and one near the bend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ....facts.intervals import ENOUGH_ROUNDS
from ....facts.not_compared import NotCompared
from ....facts.result import DeviceFacts, Probe
from ....facts.speed_rounds import SpeedRound
from ....facts.stats import decisive_probes
from ....race.speed.comparison import APART
from ....race.speed.rounds import BUSY_STARTS_FRACTION, RUN_TO_RUN, RUN_TO_RUN_OF_STARTS, Candidates
from ....race.speed.selection import SELECTION_ROUNDS
from ....search.reserve import reserve_of, sizes_with_reserve
from ...build_result import is_today_known, measured_points
from ..judge.timed_steps import BLOCK_SECONDS, mean_speed, steps_to_time
from ..spec import FunctionSpec, TuneSpec
from ..start.launch import LOOK_SECONDS

METHOD = (
    "starts of the sizes in turns, each a fresh process; signed-rank interval of the ratios of the rounds, whose "
    "starts are others than those that chose the sizes"
)
METHOD_HELD = (
    "starts of the sizes, held in a process or forked from one, train blocks in turns; signed-rank interval of the "
    "ratios of the rounds, widened by what runs differ by"
)
AT_THE_BEND = 0.9  # the curve bends at the smallest size with this share of the highest speed
WORTH_A_START = 0.8  # a size whose start was slower is none to recommend
CLEARLY_FASTER_START = 1.25  # than the start of today's size: only such a smaller size is compared
GAP = 4
"""Neighbours of the bend that are further from it than this factor leave open where it is. Where the fixed cost of a
step is a tenth of it, it is a thirty-seventh at four times the size: within 3 % of all that larger ones can gain."""
MOST_SECONDS = 900.0
"""What a comparison may take in all."""
EXTRA_STARTS, EXTRA_SECONDS_OF_HELD = 12, 24.0
"""What it may take beyond its fewest rounds: so many starts where each block is one, so long where starts are held."""
MOST_BETWEEN = 4  # starts to find the bend and its neighbours


def sizes_to_compare(
    spec: TuneSpec | FunctionSpec,
    device: DeviceFacts,
    probes: Sequence[Probe],
    largest: int,
    *,
    cores: int = 1,
    are_held: bool,
) -> Candidates | NotCompared:
    """Return the sizes that there is time to compare with today's, or why none; `are_held`: each is started once."""
    today = spec.current_batch_size
    points = measured_points(probes, device, largest)
    if not is_today_known(today, probes):
        return NotCompared.TODAY_NOT_MEASURED
    speeds = start_speeds(spec, device, probes, largest)
    base = today if today in points else None
    others = others_to_compare(speeds, base) or untimed_to_compare(spec, device, probes, largest, base)
    if base is not None and not others:
        return NotCompared.NONE_TO_COMPARE
    if base is None and len(others) < 2:
        return NotCompared.TOO_FEW
    fits = {p.batch_size: p for p in probes if p.fits}
    most = min(MOST_SECONDS, spec.time_budget_seconds - sum(p.wall_seconds for p in probes))
    own = [] if base is None else [base]
    affordable = others
    while affordable and _least_seconds([fits[s] for s in affordable], [fits[s] for s in own], are_held) > most:
        affordable = affordable[:-1]
    if len(own) + len(affordable) < 2:
        return NotCompared.TOO_LONG
    is_cpu = device.kind == "cpu"
    more_seconds = EXTRA_STARTS * max(fits[size].wall_seconds for size in affordable)
    return Candidates(
        sizes=tuple(sorted(affordable)),
        current=base,
        with_reserve=frozenset(affordable),
        cores=cores,
        shares_cores=is_cpu,
        busy_fraction=BUSY_STARTS_FRACTION,
        by_start={size: speeds[size] for size in affordable} if speeds.keys() >= {*affordable} else {},
        extra_seconds=EXTRA_SECONDS_OF_HELD if are_held else more_seconds,
        run_to_run=RUN_TO_RUN_OF_STARTS if is_cpu else RUN_TO_RUN,
    )


def start_speeds(
    spec: TuneSpec | FunctionSpec, device: DeviceFacts, probes: Sequence[Probe], largest: int
) -> dict[int, float]:
    points = measured_points(probes, device, largest)
    wanted = _keeping_reserve(spec, device, probes, largest) | (points.keys() & {spec.current_batch_size})
    decisive = decisive_probes(probes)
    timed = [s for s in sorted(wanted) if decisive[s].timed_step_seconds and decisive[s].samples_per_second]
    return {s: mean_speed(decisive[s]) for s in timed}


def untimed_to_compare(
    spec: TuneSpec | FunctionSpec, device: DeviceFacts, probes: Sequence[Probe], largest: int, today: int | None
) -> tuple[int, ...]:
    """Return the largest size with the reserve and one between, where the data ended before larger steps were timed.

    A start that is timed begins its data again; the search's starts go on to the script's own end.
    """
    larger = sorted(size for size in _keeping_reserve(spec, device, probes, largest) if size > (today or math.inf))
    if not larger or today is None:
        return ()
    between = min(larger, key=lambda size: abs(math.log(size * size / (today * larger[-1]))))
    return tuple(dict.fromkeys([larger[-1], between]))


def _keeping_reserve(
    spec: TuneSpec | FunctionSpec, device: DeviceFacts, probes: Sequence[Probe], largest: int
) -> frozenset[int]:
    points, limit_bytes = measured_points(probes, device, largest), device.limit_bytes or device.capacity_bytes
    return frozenset(sizes_with_reserve(points, limit_bytes, reserve_of(spec, limit_bytes, probes, largest)))


def others_to_compare(speeds: Mapping[int, float], today: int | None) -> tuple[int, ...]:
    """Return up to three sizes: at the bend, the largest, one near the bend; below today's only for clearly more speed.

    >>> others_to_compare({16: 1771, 128: 8056, 1024: 13882, 2542: 13593, 4816: 13766}, today=16)
    (1024, 4816, 2542)
    """
    allowed = _allowed(speeds, today)
    if not allowed:
        return ()
    bend, largest = _bend(allowed), max(allowed)
    worth = [
        size
        for size, speed in allowed.items()
        if speed >= WORTH_A_START * max(allowed.values())
        and all(max(size, one) >= APART * min(size, one) for one in (bend, largest))
    ]
    beside = [size for size in worth if size > bend] or worth
    near = min(beside, key=lambda size: abs(math.log(size / (GAP * bend))), default=bend)
    chosen = tuple(dict.fromkeys([bend, largest, near]))
    if today is None and len(chosen) == 1:  # a size is compared with today's, or else with the next best
        return (*chosen, *sorted(allowed.keys() - {bend}, key=lambda size: -allowed[size])[:1])
    return chosen


def size_to_start(speeds: Mapping[int, float], today: int | None) -> int | None:
    """Return the size to start next, by the fixed cost of a step, to find the bend; None where its neighbours are near.

    >>> size_to_start({16: 1771, 4816: 13766}, today=16)
    1024
    >>> size_to_start({16: 1771, 256: 9000, 1024: 12882, 19_000: 13766}, today=16)
    4096
    >>> size_to_start({16: 1771, 256: 9000, 1024: 13882, 4816: 13766}, today=16) is None
    True
    """
    allowed = _allowed(speeds, today)
    if not allowed:
        return None
    bend = _bend(allowed)
    below = max((s for s in speeds if s < bend and (today is None or s >= today)), default=bend)
    above = min((s for s in allowed if s > bend * APART), default=bend)
    if bend > GAP * below:
        size_at_half_speed = below * (max(allowed.values()) / speeds[below] - 1)
        predicted = size_at_half_speed * AT_THE_BEND / (1 - AT_THE_BEND)
        return int(2 ** round(math.log2(max(min(predicted, bend / GAP), 2 * below))))
    return GAP * bend if above > GAP * bend * APART else None


def _allowed(speeds: Mapping[int, float], today: int | None) -> dict[int, float]:
    if today is None:
        return dict(speeds)
    least = CLEARLY_FASTER_START * speeds.get(today, math.inf)
    return {size: speed for size, speed in speeds.items() if size > today or (size < today and speed >= least)}


def _bend(speeds: Mapping[int, float]) -> int:
    return min(size for size, speed in speeds.items() if speed >= AT_THE_BEND * max(speeds.values()))


def _least_seconds(others: Sequence[Probe], own: Sequence[Probe], are_held: bool) -> float:
    """Return how long the fewest blocks take: those that choose among the others, then pairs of two sizes."""
    of_others, of_own = (
        [block_seconds(p.step_seconds or 0.0) if are_held else p.wall_seconds for p in each] for each in (others, own)
    )
    selection = (SELECTION_ROUNDS - 1) * sum(of_others) if len(others) > 1 else 0.0
    started = sum(p.wall_seconds for p in (*others, *own)) if are_held else 0.0
    return started + selection + ENOUGH_ROUNDS * sum(sorted([*of_others, *of_own])[-2:])


def method_of(rounds: Sequence[SpeedRound]) -> str:
    return METHOD_HELD if any(block.was_held for each in rounds for block in each.blocks) else METHOD


def block_seconds(step_seconds: float, settling_steps: int = 0) -> float:
    """Return how long a further block of a start that is held is expected to take."""
    return (steps_to_time(step_seconds, BLOCK_SECONDS) + settling_steps) * step_seconds + LOOK_SECONDS
