"""The phases of a run as the steps of a list, each with a short fact, and how far the run is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.models import Run, State
from analysis.presentation.stored_estimate import StoredEstimate
from engine.plan import SoFar, share_of_phase
from engine.progress import (
    CHECKING_PHASES,
    COMPARING_PHASES,
    ESTIMATING_PHASES,
    MEASURING_PHASES,
    PHASE_NAMES,
    TIMING_PHASES,
    TUNING_PHASES,
    VALIDATING_PHASES,
)
from engine.result import Outcome, Probe, Purpose

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


def run_steps(run: Run, known: SoFar, estimate: StoredEstimate | None, progress: Mapping[str, Any]) -> Steps:
    """Return the steps of a run that is not over."""
    phases = phases_of(run)
    if run.state != State.RUNNING:
        return Steps(tuple(Step(PHASE_NAMES[name], LATER, "") for name in phases), 0, 0)
    now = phases.index(run.phase) if run.phase in phases else (len(phases) if run.phase == "finished" else 0)
    states = [DONE if place < now else NOW if place == now else LATER for place in range(len(phases))]
    steps = [
        Step(PHASE_NAMES[name], state, "" if state == LATER else _fact(name, state, known, estimate, progress))
        for name, state in zip(phases, states, strict=True)
    ]
    share = _share(known, progress)
    return Steps(tuple(steps), min(now + 1, len(phases)), round(100 * (now + share) / len(phases)))


def phases_of(run: Run) -> tuple[str, ...]:
    """Return the phases that this run goes through, as far as that is known before; all where it goes another way."""
    if run.is_estimate:
        return ESTIMATING_PHASES
    if run.is_validation:
        return VALIDATING_PHASES[run.spec["check"]]
    if run.is_command:
        return COMPARING_PHASES if run.spec.get("compare_speed") else TUNING_PHASES
    if run.spec.get("check_batch_size") is not None:
        return CHECKING_PHASES
    # a run that takes over another one searches after all where the device or the software changed
    is_timing_only = run.takes_over_id is not None and run.phase in ("", *TIMING_PHASES)
    return TIMING_PHASES if is_timing_only else MEASURING_PHASES


def _share(known: SoFar, progress: Mapping[str, Any]) -> float:
    if progress.get("cards"):
        if progress.get("stage"):  # the card is done; how many other settings or sizes follow is only in its text
            return 0.0
        return min(1.0, float(progress["cards_done"]) / float(progress["cards"]))
    return share_of_phase(known)


def _fact(phase: str, state: str, known: SoFar, estimate: StoredEstimate | None, progress: Mapping[str, Any]) -> str:
    """Return what is known of a phase that is done or goes on."""
    stage, trying = str(progress.get("stage") or ""), progress.get("batch_size")
    step = f", step {progress['step']}" if state == NOW and progress.get("step") else ""
    if phase == "predicting" and progress.get("cards"):
        if state == NOW and stage:  # other settings or sizes, after the card
            return stage
        return f"{progress['cards_done']} of {progress['cards']} card{'' if progress['cards'] == 1 else 's'}"
    if phase == "searching":
        return _searched(known.probes, trying if state == NOW else None) + step
    if state == NOW:
        return _going_on(phase, known, trying, step, progress) or stage
    if phase == "estimating":
        if estimate is None:  # it is told when the device is open
            return "" if known.phase == "preparing" else "none could be made"
        return f"{estimate.largest_batch_size:,} expected" if estimate.largest_batch_size else "nothing should fit"
    if phase == "soaking":
        soaked = [probe for probe in known.probes if probe.purpose is Purpose.SOAK and probe.fits]
        return f"{soaked[-1].batch_size:,} ran {soaked[-1].steps} steps" if soaked else ""
    if phase == "curve":
        return _counted(sum(probe.purpose is Purpose.CURVE for probe in known.probes), "size")
    return ""


def _going_on(phase: str, known: SoFar, trying: int | None, step: str, progress: Mapping[str, Any]) -> str:
    if phase == "soaking" and trying:
        return f"{trying:,}{step} of {known.soak_steps}" if step else f"{trying:,} for {known.soak_steps} steps"
    if phase == "curve" and trying:
        return f"{trying:,} next{step}"
    if phase == "explaining" and trying:
        return f"{trying:,} once more{step}"
    if phase == "timing" and progress.get("round"):
        return f"round {progress['round']}"
    return ""


def _searched(probes: Sequence[Probe], trying: int | None) -> str:
    """Write "92 fits, 93 next", and after the search "92 fits, 93 does not"."""
    searched = [probe for probe in probes if probe.purpose in (Purpose.SEARCH, Purpose.CONFIRM)]
    largest = max((probe.batch_size for probe in searched if probe.fits), default=0)
    over = [probe.batch_size for probe in searched if probe.outcome is not Outcome.FITS and probe.batch_size > largest]
    parts = [f"{largest:,} fits"] if largest else []
    if trying is not None and trying not in (largest, *over):
        parts.append(f"{trying:,} next")
    elif over:
        parts.append(f"{min(over):,} does not")
    return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}" if count else ""
