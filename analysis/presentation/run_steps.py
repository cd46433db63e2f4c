"""The phases of a run as the steps of a list, each with a short fact, and how far the run is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.models import Run, State
from analysis.presentation.kinds import presentation_of
from engine.documents.estimated import EstimatedCard
from engine.phase_facts import finding_of_phase, searched
from engine.plan import SoFar, share_of_phase
from engine.progress import PHASE_NAMES
from engine.time_left import describe_round

DONE, NOW, LATER = "done", "now", "later"


@dataclass(frozen=True, slots=True)
class Step:
    """One phase: its name, whether it is done, going on, or still to come, and what is known of it."""

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
        Step(PHASE_NAMES[name], state, "" if state == LATER else _fact(name, state, known, estimate, progress))
        for name, state in zip(phases, states, strict=True)
    ]
    if not progress.get("cards"):
        share = share_of_phase(known)
    elif progress.get("stage"):  # the card is done; how many other settings or sizes follow is only in its text
        share = 0.0
    else:
        share = min(1.0, float(progress["cards_done"]) / float(progress["cards"]))
    return Steps(tuple(steps), min(now + 1, len(phases)), round(100 * (now + share) / len(phases)))


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
            return "" if known.phase == "preparing" else "none could be made"
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
