"""The protocol of a kind of run on pages: all texts that depend on the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from analysis.formatting import round_bytes
from analysis.models import Device, Run, State
from analysis.presentation.labels import (
    DEVICE_LABELS,
    Chip,
    describe_settings,
    describe_several,
    model_name,
    short_device_name,
)
from analysis.presentation.unreadable import UnreadableError
from analysis.runs.gpu_catalog import gpu_of
from engine.facts.result import Reason
from engine.questions.documents.raced import AnyRace

BATCH_SIZES, CHANGES = "batch sizes", "changes of the training"
# colours of a badge: white text has a contrast of at least 4.5 on each, which a test holds
CERTIFIED, NOT_CERTIFIED, DOES_NOT_FIT, ESTIMATED = "#0a6b3c", "#8a5a00", "#b3261e", "#1f5f8b"


def endings_of(
    noun: str, gives: str, *, failed: str, who: str = "The engine", is_explained: bool = True
) -> dict[State, tuple[str, str]]:
    """Return the headline of a run that ended without a result, for its model and its place, and an explanation."""
    reason, again = (" The reason is below.", " Start it again.") if is_explained else ("", "")
    stopped = f"Its worker stopped before the end; the {noun} itself did not fail.{again}"
    return {
        State.FAILED: (f"{{}} on {{}}: {failed}.", f"{who} gave no {gives}.{reason}"),
        State.CANCELLED: (f"{{}} on {{}}: the {noun} was cancelled.", f"It gives no {gives}."),
        State.INTERRUPTED: (f"{{}} on {{}}: the {noun} was interrupted.", stopped),
    }


class Presentation(Protocol):
    """A kind of run in words. What is not overridden holds for a run on a device that finds a batch size."""

    noun: str = "run"
    """How such a run is called with its number."""
    mark: str = ""
    """What lists and headings write beside its number; empty for the runs that most are."""
    shows_probes: bool = False
    """Whether it measures batch sizes, so that its page has a table and a chart of them."""
    is_predicted: bool = False
    """Whether its figures are predicted, and none is measured."""
    runs_own_code: bool = False
    """Whether it runs somebody's own training: no setting of it is known, and its name and command are theirs."""
    has_limit: bool = True
    """Whether it keeps a memory limit, also where none was requested."""
    not_compared: str = ""
    """Name of the kind for "... cannot be compared"; empty where runs of the kind can be."""
    compared_by: str = BATCH_SIZES
    """What its figures belong to: only runs that agree in it are compared with each other."""
    waiting: str = ""
    """What a queued run waits for; empty where it is the requested device."""
    starting: str = "The worker is starting the engine."
    """What happens before the first event."""
    endings: Mapping[State, tuple[str, str]]

    def found(self, run: Run) -> str:
        """Write what a finished run found in a word: "✓ 60", "≈ 154", "✕ does not fit"."""

    def answer(self, run: Run) -> str:
        """Write what a finished run found as one text, for a message without a page. Raises UnreadableError."""

    def phases(self, run: Run) -> tuple[str, ...]:
        """Return the phases of this run, as far as they are known before; all where it goes another way."""

    def chip(self, run: Run) -> Chip | None:
        """Return what a run ended with, where that says more than its state."""
        return None

    def used_bytes(self, run: Run) -> int | None:
        """Return what lists call used: the memory at the recommended size."""
        return run.recommended_memory_bytes

    def doing(self, run: Run) -> str:
        return f"Finding the batch size of {model_name(run.model)}"

    def race(self, run: Run) -> AnyRace:
        """Read the result of a race. Raises UnreadableError, as any other kind of run does."""
        raise UnreadableError(f"{self.noun} {run.pk} is no race")

    def compares_speeds(self, spec: Mapping[str, Any]) -> bool:
        return False

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        return describe_settings(spec)

    def place(self, run: Run) -> str:
        """Return the run's device; of a waiting run the requested one, of an estimate its card."""
        if device := _device_of(run):
            return describe_several(short_device_name(device.name), run.device_count)
        kind = DEVICE_LABELS.get(run.requested_kind, run.requested_kind.upper())
        if run.is_reported:  # it had begun on its own host, but ended before it named the device
            return "the CPU" if kind == "CPU" else "a GPU" if kind == "GPU" else f"a device of {run.reported_from}"
        name = run.requested_device_class or kind
        return f"any {name}" if run.device_count == 1 else f"{describe_several(name, run.device_count)} of one host"

    def place_bytes(self, run: Run) -> int | None:
        device = _device_of(run)
        return device.capacity_bytes if device else None

    def card(self, run: Run) -> str:
        device = run.device or Device(name=run.device_name, capacity_bytes=run.capacity_bytes or 0)
        if known := gpu_of(device):
            return short_device_name(known.name)
        name = f"{short_device_name(device.name)} {round_bytes(device.capacity_bytes)}"
        return "CPU" if device.kind == "cpu" else name

    def badge_claim(self, run: Run) -> tuple[str, str]:
        if run.boundary_reason == Reason.DOES_NOT_FIT:
            return "does not fit", DOES_NOT_FIT
        if not run.largest_batch_size:
            return "not measured to the end", NOT_CERTIFIED
        size = f"batch {run.largest_batch_size}"
        return (f"{size} certified", CERTIFIED) if run.certified else (f"{size} not certified", NOT_CERTIFIED)


def _device_of(run: Run) -> Device | None:
    return run.requested_device if run.state == State.QUEUED else run.device or run.requested_device
