"""Watches the largest size to the end of a pass over its data, where that is near: what runs there counts, too."""

from __future__ import annotations

import math
from dataclasses import replace

from ...errors import CommandUntunable
from ...facts.result import Outcome, Purpose
from ...search.stillness import MOST_SECONDS, MOST_STEPS
from ...text.units import format_bytes
from .judge.differences import MEMORY_VARIES
from .judge.evidence import Evidence
from .sizes.next_start import STEPS
from .speed.seats import Seats
from .start.launch import Watching


def check_a_pass(seats: Seats, batch_size: int) -> None:
    """Start a size for a whole pass. Raises CommandUntunable where that takes more memory than its first steps."""
    sweep = seats.sweep
    known = sweep.evidence[batch_size]
    if (steps := steps_of_a_pass(known)) is None:
        return
    sweep.execution.log(f"batch {batch_size}: started again for the {steps} steps to the end of a pass over its data")
    watching = Watching(steps, timed_steps=0, least_steps=STEPS, memory_seconds=2 * MOST_SECONDS)
    try:
        seen = sweep.judged(*seats.start(batch_size, watching, Purpose.CONFIRM), batch_size)
    except CommandUntunable as error:  # as where the script ends with the pass
        sweep.execution.log(f"the end of a pass was not seen: {error}", "warning")
        return
    probe = seen.probe
    seats.timed_starts.append(probe)
    if probe.fits and known.unseen is not None:
        unseen = replace(known.unseen, steps_of_a_pass=probe.steps)
        observed = replace(known.observed, growth_bytes=seen.observed.growth_bytes)  # a pass may end with what it kept
        sweep.evidence[batch_size] = replace(known, unseen=unseen, observed=observed)
    if probe.outcome is Outcome.OUT_OF_MEMORY:
        took = format_bytes(known.probe.memory_bytes or 0)
        more = format_bytes(probe.peak_allocated_bytes) if probe.peak_allocated_bytes else "more"
        raise CommandUntunable(
            MEMORY_VARIES,
            f"batch {batch_size} trained {known.probe.steps} steps in {took}, but a pass over its data, with what the "
            f"script does at its end, took {more}: --whole-run finds the size that fits all of it",
        )


def steps_of_a_pass(evidence: Evidence) -> int | None:
    """Return the steps to watch so that a pass ends among them; None where it is far, not known, or was watched."""
    batches, watched = evidence.unseen.pass_batches if evidence.unseen else None, evidence.watched
    if not batches or watched is None or evidence.world_size != 1:
        return None
    steps = math.ceil(batches / max(evidence.micro_batches, 1)) + 2
    is_far = steps > MOST_STEPS or steps * watched.step_seconds > MOST_SECONDS
    return None if is_far or steps <= watched.steps else steps
