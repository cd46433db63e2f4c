"""PURE: the answer of a measurement or a tuned command, worked out from its probes and rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from ...estimate.prior import error_of
from ...facts.not_compared import NotCompared
from ...facts.result import Boundary, Probe, Purpose, Reason
from ...facts.speed_rounds import SpeedBlock, SpeedRound
from ...race.speed.comparison import Comparison, concluded
from ...race.speed.selection import verdict_of
from ...search.boundary import with_current_size_note
from ...trainings.build_result import answer, measured_points
from ...trainings.script.speed.to_compare import method_of
from ..documents.measured import Measured
from .impossible import Impossible, refuse
from .physics import impossible_figures
from .size_facts import SizeFacts


def answer_of_sizes(kind: type[SizeFacts], document: Mapping[str, Any]) -> Measured:
    """Return the result with all that its facts imply. Raises SpecError and ImpossibleFiguresError."""
    facts = kind.read(document)
    stored = facts.stored
    refuse(impossible_figures(facts))
    rounds, wrong = _rounds_of(facts)
    refuse(wrong)
    boundary = boundary_of(facts)
    refuse(facts.impossible_training(boundary))
    comparison = _compare(facts, boundary, rounds)
    result = answer(
        facts.spec,
        facts.device,
        boundary,
        _probes_with_speeds(facts, comparison),
        comparison,
        environment=stored.environment,
        timings=stored.timings,
    )
    error = None if stored.estimate is None else error_of(stored.estimate, result)
    explained = stored.memory_breakdown
    if explained is not None and explained.batch_size != facts.explained_size(boundary):
        explained = None
    parts = {"estimate": stored.estimate, "estimate_error": error, "memory_breakdown": explained}
    return Measured.of_answer(result, training=facts.training_of(boundary), **parts)


def boundary_of(facts: SizeFacts) -> Boundary:
    """Return the end as the run says, or the nearest one by its probes. A run may claim less than its probes prove."""
    ended = facts.stored.boundary

    def distance(possible: Boundary) -> tuple[bool, bool, bool]:
        return (
            possible.largest_batch_size != ended.largest_batch_size,
            possible.reason is not ended.reason,
            possible.refused_batch_size != ended.refused_batch_size,
        )

    found = min(facts.boundaries(), key=distance)
    found = replace(found, certified=found.certified and ended.certified)
    return with_current_size_note(facts.noted(found), facts.spec)


def _compare(facts: SizeFacts, boundary: Boundary, rounds: Sequence[SpeedRound]) -> Comparison:
    """Return what the rounds show. Other work and seconds follow from nothing else, and are as the run says."""
    largest, said = boundary.largest_batch_size or 0, facts.stored.speed
    if said is None:
        return Comparison(why=NotCompared.RUN_ENDED)
    why = said.why or NotCompared.said_by(said.reason, facts.spec.current_batch_size) or NotCompared.RUN_ENDED
    known = Comparison(
        why=facts.not_compared(why, largest),
        seconds=said.seconds,
        others_cores=said.others_cores,
        cores=said.cores,
        left_out=tuple(sorted(each.left_out for each in rounds if each.left_out is not None)),
    )
    is_searched = facts.spec.check_batch_size is None and boundary.reason is not Reason.TIME_BUDGET
    points = measured_points(facts.untimed, facts.device, largest) if largest and is_searched else {}
    timed = {block.batch_size for each in rounds for block in each.blocks} | {*known.left_out}
    if not points or not (rounds or known.seconds):
        return known
    if not timed <= points.keys():
        refuse([Impossible("speed_rounds", sorted(timed), sorted(points))])
    candidates = facts.candidates(known, rounds, points, largest)
    if isinstance(candidates, NotCompared):
        return replace(known, why=candidates, speed_rounds=tuple(rounds))
    known = replace(known, speed_rounds=tuple(rounds), method=method_of(rounds) if facts.spec.starts_anew else None)
    verdict = verdict_of(candidates, rounds)
    return known if verdict is None else concluded(replace(known, why=None), verdict)


def _rounds_of(facts: SizeFacts) -> tuple[list[SpeedRound], list[Impossible]]:
    """Return the rounds, each block with a typical step of those it timed, and what cannot have been timed."""
    timed = [p for p in facts.probes if p.purpose is Purpose.TIMING]
    timings, used = {p.batch_size: p for p in timed}, dict[int, int]()
    wrong, rounds = list[Impossible](), []
    typical = fmean if facts.spec.starts_anew else median
    if len(timings) < len(timed):
        wrong.append(Impossible("probes", "a size with two timing probes", "one for each size"))
    for number, each in enumerate(facts.stored.speed_rounds):
        path, blocks, steps_seconds = f"speed_rounds[{number}]", list[SpeedBlock](), 0.0
        for place, block in enumerate(each.blocks):
            size = block.batch_size
            steps = _steps_of(block, timings.get(size))
            if not steps or block.first_step < used.get(size, 0):
                wrong.append(Impossible(f"{path}.blocks[{place}].first_step", block.first_step, "steps, each once"))
                continue
            used[size] = block.first_step + block.steps
            steps_seconds += sum(steps)
            micro_batches = max(facts.micro_batches(size, block.micro_batches), 1)
            blocks.append(replace(block, step_seconds=typical(steps), micro_batches=micro_batches))
        least_seconds = max(facts.least_seconds(each), steps_seconds)  # this also bounds the number of rounds
        if each.seconds < least_seconds * (1 - 1e-6):
            wrong.append(Impossible(f"{path}.seconds", each.seconds, least_seconds))
        rounds.append(replace(each, blocks=tuple(blocks)))
    return rounds, wrong


def _steps_of(block: SpeedBlock, probe: Probe | None) -> Sequence[float]:
    """Return the steps of a block; empty where the timing probe does not have all of them."""
    if probe is None or block.first_step < 0 or block.steps < 1:
        return ()
    steps = probe.timed_step_seconds[block.first_step : block.first_step + block.steps]
    return steps if len(steps) == block.steps else ()


def _probes_with_speeds(facts: SizeFacts, found: Comparison) -> list[Probe]:
    speeds = found.speed_by_size
    return [
        facts.timing_of(p, speeds.get(p.batch_size)) if p.purpose is Purpose.TIMING and p.timed_step_seconds else p
        for p in facts.probes
    ]
