"""The state of a run in words, its phases as the steps of a list, and texts for one that ended without a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone

from analysis.formatting import duration
from analysis.models import Run, State
from analysis.presentation.device_cards import describe_hold
from analysis.presentation.kinds import presentation_of, run_place
from analysis.presentation.labels import Chip, model_name
from analysis.presentation.origin import executor_of
from analysis.runs.queue.forecast import QueuePosition
from analysis.runs.queue.remaining_time import RemainingTime
from analysis.runs.queue.retry_policy import Cause
from analysis.runs.queue.scheduling import FORECAST_STARTS_MAX
from engine.describe.time_left import describe_round
from engine.describe.time_left.measurement import SoFar, share_of_phase
from engine.describe.time_left.phase_facts import finding_of_phase, searched
from engine.facts.progress import PHASE_LABELS, PHASE_NAMES
from engine.questions.documents.estimated import EstimatedCard
from engine.report.script_output import STAYED
from engine.text.time_left import OF_BUDGET, describe_left, describe_most_left
from engine.text.units import sentence_case

_CHIPS = {
    State.QUEUED: Chip("○", "queued", "chip-plain"),
    State.RUNNING: Chip("◐", "running", "chip-run"),
    State.FINISHED: Chip("●", "finished", "chip-ok"),
    State.FAILED: Chip("✕", "failed", "chip-bad"),
    State.CANCELLED: Chip("⊘", "cancelled", "chip-plain"),
    State.INTERRUPTED: Chip("▲", "interrupted", "chip-run"),
}

_SOON_SECONDS = 5


def chip(run: Run) -> Chip:
    """Return the state's label; of a running run with a cancel request "stopping"."""
    if run.state == State.RUNNING and run.cancel_requested:
        return Chip("◐", "stopping", "chip-run")
    return _CHIPS[State(run.state)]


def describe_phase(run: Run, turn: QueuePosition | None = None) -> str:
    kind = presentation_of(run)
    if run.state == State.QUEUED and kind.waiting:
        return kind.waiting
    if run.state == State.QUEUED:
        if turn is None:
            return f"Waiting for {run_place(run)}; the start time is unknown."
        why = f": it is {describe_hold(turn.held)}" if turn.held else ""
        return f"Waiting: {describe_queue_position(turn)}{why}."
    if run.cancel_requested:
        return "Stopping the engine."
    if run.phase == "":
        return executor_of(run).starting or kind.starting
    if run.phase == "finished":
        return "Storing the result."
    label = PHASE_LABELS.get(run.phase, run.phase)
    return f"{sentence_case(label)}."


def describe_queue_position(turn: QueuePosition) -> str:
    """Write "next, after run 17, in about 4 min", "number 3 in the queue" or "next, when cpu of vm is free"."""
    if turn.position is None:
        return f"more than {FORECAST_STARTS_MAX} runs before it"
    parts = ["next" if turn.position == 1 else f"number {turn.position} in the queue"]
    if turn.held is not None:
        parts.append(f"when {turn.held.device} of {turn.held.host} is free")
    elif turn.after_run is not None:
        parts.append(f"after run {turn.after_run}")
    if turn.start_at is not None:
        seconds = (turn.start_at - timezone.now()).total_seconds()
        parts.append(f"in about {duration(seconds)}" if seconds >= _SOON_SECONDS else "expected now")
    return ", ".join(parts)


def tab_title(run: Run, steps: str = "", left: str = "", turn: QueuePosition | None = None) -> str:
    """Write the tab's title: "3 of 6 · 1 min left · BERT tiny", "✓ 60 · BERT tiny"; `turn` is a waiting run's."""
    name = model_name(run.model)
    if run.state == State.QUEUED:
        number = turn and turn.position
        place = "waiting" if number is None else "next" if number == 1 else f"number {number}"
        return f"{place} · {name}"
    if run.state == State.RUNNING:
        return " · ".join(filter(None, ["stopping" if run.cancel_requested else steps, left, name]))
    if run.state != State.FINISHED:
        return f"{chip(run).icon} {chip(run).word} · {name}"
    return f"{presentation_of(run).found(run)} · {name}"


def is_silent(run: Run) -> bool:
    return run.state == State.RUNNING and (_silent_seconds(run) or 0.0) > settings.RUN_SUSPECT_SECONDS


def describe_silence(run: Run) -> str:
    """Warn that the page may be out of date, and what happens next; empty while the worker gives signs of life."""
    if not is_silent(run):
        return ""
    executor = executor_of(run)
    return (
        f"No sign of life from {executor.name} for {duration(_silent_seconds(run))}: this page may be out of date. "
        f"After about {duration(settings.RUN_LEASE_SECONDS)} {executor.after_silence}."
    )


def _silent_seconds(run: Run) -> float | None:
    return None if run.heartbeat_at is None else (timezone.now() - run.heartbeat_at).total_seconds()


@dataclass(frozen=True, slots=True)
class RemainingTimeText:
    """How long the run may still take, and the basis of that; `left` is for the page's countdown."""

    left: RemainingTime
    text: str
    roughly: str
    source: str


def describe_remaining_time(left: RemainingTime) -> RemainingTimeText:
    """Write "About 2 min left", because 4 similar earlier runs took 2 min to 3 min; of a race "At most 25 min left"."""
    source = "estimated from this run so far"
    if (earlier := left.earlier) is not None:
        took = f"{duration(earlier.shortest_seconds)} to {duration(earlier.longest_seconds)}"
        source = f"{earlier.count} earlier runs with these settings on such a device took {took}"
    if left.is_most:
        source = "what is raced next depends on what was timed"
    if not left.seconds:
        return RemainingTimeText(left, "Longer than expected", "", source)
    if left.is_most:
        text = describe_most_left(left.seconds)
        return RemainingTimeText(left, f"{sentence_case(text)} {OF_BUDGET}", text, source)
    text = describe_left(left.seconds)
    return RemainingTimeText(left, sentence_case(text), text.removeprefix("about "), source)


def ending(run: Run, state: State) -> tuple[str, str]:
    title, explanation = presentation_of(run).endings[state]
    if state == State.INTERRUPTED:
        explanation = executor_of(run).why_interrupted or explanation
    title = title.format(model_name(run.model), run_place(run))
    if run.error_code and state != State.CANCELLED:
        cause, _ = _FAILURES.get(run.error_code, (run.error_code.replace("_", " "), ""))
        title = f"{title.removesuffix('.')}: {cause}."
    return title, explanation


def advice(run: Run, *, has_log: bool) -> list[str]:
    if run.state == State.CANCELLED:
        return ["Start it again: a new run measures again, and this page stays unchanged."]
    if run.state == State.INTERRUPTED:
        return list(executor_of(run).after_interruption)
    log = ["Read the end of the log below: it shows the engine’s last output."] if has_log else []
    if run.is_reported and STAYED in run.error_message:
        log = [
            f"What it printed stayed on {run.reported_from}, where the failed command named its log "
            "(~/.cache/memorymark). Start it with --report-output to see the last lines here too."
        ]
    _, change = _FAILURES.get(run.error_code, ("", _USUAL_ADVICE))
    return [change, *log]


_USUAL_ADVICE = "Run it again; if it fails in the same way, change the settings that the message names."
_FAILURES = {
    "workload_failed": ("a step raised an error", _USUAL_ADVICE),
    "time_out": ("its time ran out", "Start a new run with a larger time budget or a smaller workload."),
    "bad_spec": ("a setting was refused", "Change the setting that the message names, and run again."),
    "device_unavailable": (
        "its device was not available",
        "Check on the fleet page whether the device is available, or choose another one.",
    ),
    "weights_unavailable": (
        "the weights could not be loaded",
        "Leave out `pretrained`: random weights need the same memory.",
    ),
    "estimate_impossible": ("this cannot be estimated", "Measure it instead."),
    "engine_not_started": ("the worker cannot start the engine", "Check the installation on its host."),
    Cause.ENGINE_KILLED: (
        "something killed the engine",
        "Often the host’s memory ended: free some, or lower the limit.",
    ),
    Cause.ENGINE_CRASHED: (
        "a library or a driver crashed",
        "Run it again, or on another device or with other settings.",
    ),
    Cause.ENGINE_WORKER_DIED: ("a process of the engine died", "See the message and the host’s dmesg."),
    Cause.STALLED: (
        "it made no progress for too long",
        "The device may hang. Check it before running again.",
    ),
}
"""By the code of a failure its cause in a few words, and what to do."""


DONE, NOW, LATER, SKIPPED = "done", "now", "later", "skipped"
NO_ESTIMATE = "none could be made"


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    state: str
    fact: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a run. `number` counts from 1; 0 before the first. `percent` is for the bar."""

    steps: tuple[Step, ...]
    number: int
    percent: int

    @property
    def count(self) -> int:
        return len(self.steps)

    @property
    def text(self) -> str:
        """Write "3 of 6"; empty before the first step."""
        return f"{self.number} of {self.count}" if self.number else ""


def run_steps(run: Run, known: SoFar, estimate: EstimatedCard | None, progress: Mapping[str, Any]) -> Steps:
    phases = presentation_of(run).phases(run)
    if run.state != State.RUNNING:
        return Steps(tuple(Step(PHASE_NAMES[name], LATER, "") for name in phases), 0, 0)
    now = phases.index(run.phase) if run.phase in phases else (len(phases) if run.phase == "finished" else 0)
    states = [DONE if place < now else NOW if place == now else LATER for place in range(len(phases))]
    steps = [
        _step(name, state, "" if state == LATER else _fact(name, state, known, estimate, progress))
        for name, state in zip(phases, states, strict=True)
    ]
    if not progress.get("cards"):
        share = share_of_phase(known)
    elif progress.get("stage"):  # the card is done; how many other settings or sizes follow is only in its text
        share = 0.0
    else:
        share = min(1.0, float(progress["cards_done"]) / float(progress["cards"]))
    return Steps(tuple(steps), min(now + 1, len(phases)), round(100 * (now + share) / len(phases)))


def _step(phase: str, state: str, fact: str) -> Step:
    return Step(PHASE_NAMES[phase], SKIPPED if fact == NO_ESTIMATE else state, fact)


def _fact(phase: str, state: str, known: SoFar, estimate: EstimatedCard | None, progress: Mapping[str, Any]) -> str:
    stage, trying = str(progress.get("stage") or ""), progress.get("batch_size")
    step = f", step {progress['step']}" if state == NOW and progress.get("step") else ""
    if phase == "predicting" and progress.get("cards"):
        if state == NOW and stage:  # other settings or sizes, after the card
            return stage
        return f"{progress['cards_done']} of {progress['cards']} GPU{'' if progress['cards'] == 1 else 's'}"
    if phase == "searching":
        return searched(known.probes, trying if state == NOW else None) + step
    if state == NOW:
        return _going_on(phase, known, trying, step, progress) or stage
    if phase == "estimating":
        if estimate is None:  # it is told when the device is open
            return "" if known.phase == "preparing" else NO_ESTIMATE
        return f"{estimate.largest_batch_size:,} expected" if estimate.largest_batch_size else "nothing should fit"
    return finding_of_phase(phase, known)


def _going_on(phase: str, known: SoFar, trying: int | None, step: str, progress: Mapping[str, Any]) -> str:
    if phase == "soaking" and trying:
        return f"{trying:,}{step} of {known.soak_steps}" if step else f"{trying:,} for {known.soak_steps} steps"
    if phase == "curve" and trying:
        return f"{trying:,} next{step}"
    if phase == "explaining" and trying:
        return f"{trying:,} once more{step}"
    if phase == "timing" and progress.get("round"):
        return describe_round(progress["round"], progress.get("rounds_expected"))
    return ""
