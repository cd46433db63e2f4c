"""Each state of a run in icon, word and colour, and what the page says when a run ended without a result."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from analysis.forecast import Turn
from analysis.models import Run, State
from analysis.presentation.words import model_name, run_place
from analysis.templatetags.units import duration


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a small label: never by colour alone."""

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
_PHASES = {
    "": "The worker is starting the engine.",
    "preparing": "Preparing: importing libraries and building the model.",
    "searching": "Searching for the largest batch size that trains.",
    "soaking": "Running the largest size for longer, in a fresh process.",
    "curve": "Measuring smaller sizes for the curve.",
    "finished": "Storing the result.",
}

_ENDINGS = {
    State.FAILED: (
        "{} on {}: the analysis failed.",
        "The engine gave no result. What it measured until then is below.",
    ),
    State.CANCELLED: (
        "{} on {}: the analysis was cancelled.",
        "It gives no result. What was measured until then is below.",
    ),
    State.INTERRUPTED: (
        "{} on {}: the analysis was interrupted.",
        "Its worker stopped before the end; the analysis itself did nothing wrong. Run it again.",
    ),
}


def chip(run: Run) -> Chip:
    """The state's label; a running run that was asked to stop says so."""
    if run.state == State.RUNNING and run.cancel_requested:
        return _STOPPING
    return _CHIPS[State(run.state)]


def phase_words(run: Run, turn: Turn | None = None) -> str:
    """What happens right now, in a sentence; `turn` is that of a waiting run, if it is known."""
    if run.state == State.QUEUED:
        return f"Waiting: {turn_words(turn)}." if turn else f"Waiting for {run_place(run)}; when is not known."
    if run.cancel_requested:
        return "Stopping the engine."
    return _PHASES.get(run.phase, f"{run.phase.capitalize()}.")


def turn_words(turn: Turn) -> str:
    """ "next, in about 4 min" or "number 3"."""
    number = "next" if turn.position == 1 else f"number {turn.position:,}"
    if turn.start_at is None:
        return number
    seconds = (turn.start_at - timezone.now()).total_seconds()
    return f"{number}, in about {duration(seconds)}" if seconds >= _SOON_SECONDS else f"{number}, expected now"


def ending(run: Run) -> tuple[str, str]:
    """Headline and explanation of a run that ended without a result."""
    title, explanation = _ENDINGS[State(run.state)]
    return title.format(model_name(run.model), run_place(run)), explanation
