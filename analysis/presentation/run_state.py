"""The label of each state of a run, and the texts for a run that ended without a result."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from analysis.models import Run, State
from analysis.presentation.formatting import MINUTE, duration
from analysis.presentation.labels import model_name, run_place
from analysis.runs.queue_forecast import QueuePosition
from analysis.runs.remaining_time import RemainingTime
from analysis.runs.retry_policy import Cause
from engine.progress import PHASE_LABELS
from engine.result import Reason


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a small label with an icon, so that it does not depend on colour."""

    icon: str
    word: str
    css_class: str


_CHIPS = {
    State.QUEUED: Chip("○", "queued", "chip-plain"),
    State.RUNNING: Chip("◐", "running", "chip-run"),
    State.FINISHED: Chip("●", "finished", "chip-ok"),
    State.FAILED: Chip("✕", "failed", "chip-bad"),
    State.CANCELLED: Chip("⊘", "cancelled", "chip-plain"),
    State.INTERRUPTED: Chip("▲", "interrupted", "chip-run"),
}
_STOPPING = Chip("◐", "stopping", "chip-run")

_SOON_SECONDS = 5
_BEFORE_THE_FIRST_EVENT = "The worker is starting the engine."
_STORING = "Storing the result."

_OWN_FIGURES = "estimated from this run so far"

_ENDINGS = {
    State.FAILED: (
        "{} on {}: the analysis failed.",
        "The engine gave no result.",
    ),
    State.CANCELLED: (
        "{} on {}: the analysis was cancelled.",
        "It gives no result.",
    ),
    State.INTERRUPTED: (
        "{} on {}: the analysis was interrupted.",
        "Its worker stopped before the end; the analysis itself did not fail.",
    ),
}
_ESTIMATE_ENDINGS = {
    State.FAILED: ("{} on {}: no estimate could be made.", "The predictor gave no figures. The reason is below."),
    State.CANCELLED: ("{} on {}: the estimate was cancelled.", "It gives no figures."),
    State.INTERRUPTED: (
        "{} on {}: the estimate was interrupted.",
        "Its worker stopped before the end; the estimate itself did not fail. Start it again.",
    ),
}


_VALIDATION_ENDINGS = {
    State.FAILED: ("{} on {}: the validation could not be made.", "The engine gave no verdict. The reason is below."),
    State.CANCELLED: ("{} on {}: the validation was cancelled.", "It gives no verdict."),
    State.INTERRUPTED: (
        "{} on {}: the validation was interrupted.",
        "Its worker stopped before the end; the validation itself did not fail. Start it again.",
    ),
}
_REPORTED_INTERRUPTED = (
    "Its sender went silent before the end; the analysis itself did not fail. "
    "It goes on here when the sender is heard from again, and its result finishes it."
)
_REPORTED_STOPPED = "It was stopped where it ran, before it had a result; the analysis itself did not fail."
_VERDICTS = {"passed": "✓ passed", "warning": "▲ warning", "failed": "✕ failed"}


def chip(run: Run) -> Chip:
    """Return the state's label; of a running run with a cancel request "stopping"."""
    if run.state == State.RUNNING and run.cancel_requested:
        return _STOPPING
    return _CHIPS[State(run.state)]


def describe_phase(run: Run, turn: QueuePosition | None = None) -> str:
    """Describe the current phase in a sentence; `turn` is the queue position of a waiting run, if known."""
    if run.state == State.QUEUED and run.is_estimate:
        return "Waiting for a free worker; an estimate needs no device."
    if run.state == State.QUEUED:
        return (
            f"Waiting: {describe_queue_position(turn)}."
            if turn
            else f"Waiting for {run_place(run)}; the start time is unknown."
        )
    if run.cancel_requested:
        return "Stopping the engine."
    if run.is_estimate and run.phase == "":
        return "The worker is starting the predictor."
    if run.phase == "" and run.is_reported:
        return "Waiting for the first event of the machine that runs it."
    if run.phase in ("", "finished"):
        return _STORING if run.phase else _BEFORE_THE_FIRST_EVENT
    label = PHASE_LABELS.get(run.phase, run.phase)
    return f"{label[:1].upper()}{label[1:]}."


def describe_queue_position(turn: QueuePosition) -> str:
    """Write "next, in about 4 min" or "number 3"."""
    number = "next" if turn.position == 1 else f"number {turn.position:,}"
    if turn.start_at is None:
        return number
    seconds = (turn.start_at - timezone.now()).total_seconds()
    return f"{number}, in about {duration(seconds)}" if seconds >= _SOON_SECONDS else f"{number}, expected now"


def tab_title(run: Run, steps: str = "", left: str = "", turn: QueuePosition | None = None) -> str:
    """Write the title of the tab: "3 of 6 · 1 min left · BERT tiny", and at the end "✓ 60 · BERT tiny".

    `turn` is the queue position of a waiting run, if known.
    """
    name = model_name(run.model)
    if run.state == State.QUEUED:
        place = "waiting" if turn is None else "next" if turn.position == 1 else f"number {turn.position:,}"
        return f"{place} · {name}"
    if run.state == State.RUNNING:
        return " · ".join(filter(None, ["stopping" if run.cancel_requested else steps, left, name]))
    if run.state != State.FINISHED:
        return f"{chip(run).icon} {chip(run).word} · {name}"
    return f"{_found(run)} · {name}"


def _found(run: Run) -> str:
    """Write what a finished run found in a word: "✓ 60", "≈ 154", "✕ does not fit"."""
    if run.is_estimate:
        size = run.estimated_largest_batch_size
        if run.estimated_cards is not None:
            return f"≈ {run.estimated_cards_that_fit} of {run.estimated_cards} cards"
        return "≈ finished" if size is None else f"≈ {size:,}" if size else "≈ does not fit"
    if run.is_validation:
        return _VERDICTS.get(run.verdict, "finished")
    if run.boundary_reason == Reason.DOES_NOT_FIT:
        return "✕ does not fit"
    size = run.recommended_batch_size or run.largest_batch_size
    return f"✓ {size:,}" if size else "✓ finished"


def is_silent(run: Run) -> bool:
    """Whether the run is running but its worker has given no sign of life for so long that it may be dead."""
    return run.state == State.RUNNING and (_silent_seconds(run) or 0.0) > settings.RUN_SUSPECT_SECONDS


def describe_silence(run: Run) -> str:
    """Warn that the page may be out of date, and what happens next; empty while the worker gives signs of life."""
    if not is_silent(run):
        return ""
    whose = "the machine that runs it" if run.is_reported else "its worker"
    next_step = "the run is marked as interrupted" if run.is_reported else "another attempt starts"
    return (
        f"No sign of life from {whose} for {duration(_silent_seconds(run))}: this page may be out of date. "
        f"After about {duration(settings.RUN_LEASE_SECONDS)} {next_step}."
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
    """Write "1 m 10 s to 2 m left", because 4 similar earlier runs took 2 m to 3 m."""
    now = timezone.now()
    soonest, latest = ((moment - now).total_seconds() for moment in (left.soonest_at, left.latest_at))
    source = _OWN_FIGURES
    if (earlier := left.earlier) is not None:
        took = f"{duration(earlier.shortest_seconds)} to {duration(earlier.longest_seconds)}"
        source = f"{earlier.count} earlier runs with these settings on such a device took {took}"
    if latest <= 0:
        return RemainingTimeText(left, "longer than expected", "", source)
    text = f"{duration(soonest)} to {duration(latest)} left" if soonest > 0 else f"up to {duration(latest)} left"
    return RemainingTimeText(left, text, _roughly((max(soonest, 0.0) + latest) / 2), source)


def _roughly(seconds: float) -> str:
    """Write "2 min left"."""
    minutes = round(seconds / MINUTE)
    return f"{minutes} min left" if minutes else "less than 1 min left"


_ENDINGS_OF = {
    Run.Kind.MEASUREMENT: _ENDINGS,
    Run.Kind.ESTIMATE: _ESTIMATE_ENDINGS,
    Run.Kind.VALIDATION: _VALIDATION_ENDINGS,
}


def ending(run: Run, state: State) -> tuple[str, str]:
    """Return headline and explanation of a run that ended in this state, without a result."""
    title, explanation = _ENDINGS_OF[Run.Kind(run.kind)][state]
    if run.is_reported and state == State.INTERRUPTED:
        explanation = _REPORTED_STOPPED if run.error_code == Cause.STOPPED else _REPORTED_INTERRUPTED
    return title.format(model_name(run.model), run_place(run)), explanation


def describe_measured(probes: int) -> str:
    """Say whether there are measurements below."""
    return "The measurements until then are below." if probes else "Nothing had been measured by then."


def advice(run: Run) -> list[str]:
    """Return advice for a run that ended without a result."""
    if run.state == State.CANCELLED:
        return ["Start it again: a new run measures again, and this page stays unchanged."]
    if run.error_code == Cause.STOPPED:
        return ["Start it again where it ran, with more time where its scheduler ended it: that is a new run here."]
    if run.state == State.INTERRUPTED and run.is_reported:
        return ["If its sender has ended, send the run from its folder: memorymark sync FOLDER."]
    if run.state == State.INTERRUPTED:
        return [
            "Check whether its host is up: the fleet page shows the last sign of life of each device.",
            "Then run it again with the same settings.",
        ]
    return [_ADVICE.get(run.error_code, _ADVICE_OF_ANY), _ADVICE_LOG]


_ADVICE_LOG = "Read the end of the log below: it shows the engine’s last output."
_ADVICE_OF_ANY = "Run it again; if it fails in the same way, change the settings that the message names."
_ADVICE = {
    "time_out": "Start a new run with a larger time budget or a smaller workload.",
    "bad_spec": "Change the setting that the message names, and run again.",
    "device_unavailable": "Check on the fleet page whether the device is available, or choose another one.",
    "weights_unavailable": "The weights could not be loaded: leave out `pretrained`, random ones need the same memory.",
    "estimate_impossible": "This cannot be estimated: measure it instead.",
    "engine_not_started": "The worker cannot start the engine: check the installation on its host.",
    Cause.ENGINE_KILLED: "Something killed the engine, often a lack of host memory: free some, or lower the limit.",
    Cause.ENGINE_CRASHED: "A library or a driver crashed: run it again, or on another device or with other settings.",
    Cause.ENGINE_WORKER_DIED: "A process of the engine was killed or crashed: see the message and the host’s dmesg.",
    Cause.STALLED: "The run made no progress for too long: the device may hang. Check it before running again.",
}
