"""The time a run still takes, as one figure that counts down, from the events of any run. Does not load torch.

    measurement   its probes, and the engine's outlook on the comparison of speeds; for a check, its steps
    tuning        its starts
    validation    the steps measured so far; for compiling, a constant that was measured elsewhere
    race          at most its time budget, and no figure: what races next depends on what was timed
    estimate      the cards done so far; before the first, the time that loading the libraries took on this machine

A new figure replaces the one shown where it is smaller, or where it is clearly larger because something new is known.
It never exceeds what the time budget leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...facts.progress import ESTIMATING_PHASES
from ...facts.result import Probe
from ...settings.catalog.stored_workload import is_own_training
from ...settings.spec import soak_steps
from ...text.time_left import describe_left as describe_left
from . import measurement, starts
from .live_progress import LONGEST_SECONDS, progress_after
from .measurement import SoFar

GROWTH, GROWTH_SECONDS = 1.25, 2.0  # a new figure replaces the one shown if above GROWTH x shown + GROWTH_SECONDS
CARDS_NEEDED = 4
TRACE_OF_IMPORT, CARD_OF_IMPORT = 0.6, 0.02
"""Time of a trace, and of each card, as a share of the time to load the libraries: all three are Python on one core."""
BACKWARD_OF_FORWARD = 3.1  # time of forward and backward passes, and of comparing gradients / time of forward passes
COMPILE_SECONDS = 60.0  # time to compile a small model on a CPU, assumed until the run's own is known
AGAIN_OF_COMPILE = 0.7  # time after compiling (compiled steps, gradients compiled again) / time to compile


@dataclass(frozen=True, slots=True)
class Said:
    """A figure, and the second of the run at which it held."""

    seconds: float
    at: float

    def left(self, now: float) -> float:
        return max(self.seconds - max(now - self.at, 0.0), 0.0)


class TimeLeft:
    """Follows the events of one run. `said` is the current figure; None while nothing can be known."""

    def __init__(
        self,
        spec: Mapping[str, Any] | None = None,
        progress: Mapping[str, Any] | None = None,
        probes: Iterable[Probe] = (),
    ) -> None:
        self.spec, self.progress, self.probes = dict(spec or {}), dict(progress or {}), list(probes)
        stored = self.progress.get("left")
        self.said = Said(*stored) if stored else None

    def take(self, event: Mapping[str, Any], probe: Probe | None = None) -> None:
        """Take the next event, and its `probe` if parsed already. The figure waits for `say`, which costs more."""
        if event["event"] == "started" and isinstance(event.get("spec"), Mapping):
            self.spec = {**event["spec"], **self.spec}
            self.progress, self.probes, self.said = {}, [], None
        if event["event"] == "probe":
            self.probes.append(probe or Probe.from_dict(event["probe"]))
        left = {"left": self.progress["left"]} if "left" in self.progress else {}
        self.progress = {**progress_after(self.progress, event), **left}

    def say(self, now: float) -> None:
        """Compute the figure at this second of the run, after the events so far."""
        expected, budget = self._expected(now), _budget_of(self.spec)
        if expected is not None and budget is not None:
            expected = min(expected, max(budget - now, 0.0))
        if expected is not None and not expected <= LONGEST_SECONDS:  # true for NaN too
            expected = None
        self.said = next_said(self.said, expected, now)
        if self.said is not None:
            self.progress["left"] = [round(self.said.seconds, 1), round(self.said.at, 1)]

    def left(self, now: float) -> float | None:
        """Return the seconds left, of a race at most; with nothing known at half the budget, all of the budget."""
        if self.said is not None:
            return self.said.left(now)
        if (most := budget_of_race(self.spec)) is not None:
            return max(most - now, 0.0)
        budget = _budget_of(self.spec)
        return budget - now if budget is not None and 2 * now >= budget > now else None

    def start_under_way(self, number: int, now: float) -> starts.StartUnderWay | None:
        """Return what is to be said of the start with this number; None where no training of one's own is started."""
        return starts.start_under_way(self._so_far(now), number) if self._is_tuning else None

    @property
    def _is_tuning(self) -> bool:
        return is_own_training(self.spec)

    def _expected(self, now: float) -> float | None:
        phases = self.progress.get("phases") or {}
        if not phases.keys().isdisjoint(ESTIMATING_PHASES):
            return _of_estimate(self.progress, now)
        if self.spec.get("check_batch_size") is not None:
            return _of_check(self.spec, self.progress, now)
        if "tried" in self.spec:
            return None
        if "check" in self.spec:
            return _of_validation(self.progress, self.spec["check"] == "compile", now)
        seconds_left = starts.seconds_left if self._is_tuning else measurement.seconds_left
        return seconds_left(self._so_far(now))

    def _so_far(self, now: float) -> SoFar:
        return so_far(self.spec, self.progress, self.probes, now)


def budget_of_race(spec: Mapping[str, Any]) -> float | None:
    """Return the time budget of a race, all that is known of how long it takes; None for other runs."""
    return _budget_of(spec) if "tried" in spec else None


def _budget_of(spec: Mapping[str, Any]) -> float | None:
    budget = spec.get("time_budget_seconds")
    return float(budget) if isinstance(budget, int | float) and 0 < budget <= LONGEST_SECONDS else None


def next_said(said: Said | None, expected: float | None, now: float) -> Said | None:
    """Return the figure to show: the smaller one, unless the new one is clearly larger."""
    if expected is None or said is None:
        return said if expected is None else Said(expected, now)
    shown = said.left(now)
    is_new = expected < shown or expected > shown * GROWTH + GROWTH_SECONDS
    return Said(expected, now) if is_new else said


def describe_round(number: int, expected: object) -> str:
    """Write ``round 4 of about 8``; ``round 4`` where it is not known how many there will be."""
    return describe_number("round", number, expected)


def describe_number(what: str, number: int, expected: object) -> str:
    """Write ``start 4 of about 7``; ``start 4`` where there are more than were expected, or none were."""
    of_about = f" of about {expected}" if isinstance(expected, int) and expected >= number else ""
    return f"{what} {number}{of_about}"


def so_far(spec: Mapping[str, Any], progress: Mapping[str, Any], probes: Iterable[Probe], now: float = 0.0) -> SoFar:
    """Return what is known of a measurement or a tuning under way, as its plan takes it."""
    phases, phase, left = progress.get("phases") or {}, str(progress.get("phase") or ""), _timing_left(progress, now)
    is_tuning = is_own_training(spec)
    has_imported = phases.keys() >= {"estimating", "preparing", "searching"}  # before it prepared
    under_way: float | None = _under_way(progress, now)
    if is_tuning and "batch_size" not in progress:
        under_way = None
    elif not is_tuning and phase == "timing" and left is None:
        under_way = max(now - phases["timing"], 0.0)  # its first rounds are subtracted from the whole phase
    return SoFar(
        phase=phase,
        probes=list(probes),
        current_batch_size=int(spec.get("current_batch_size") or spec.get("batch_size") or 1),
        soak_steps=int(soak_steps(spec.get("soak_steps"), progress.get("device_kind"))),
        compares_speed=spec.get("compare_speed") is not False,
        expected=progress.get("expected"),
        open_seconds=max(0.0, phases["searching"] - phases["preparing"]) if has_imported else 0.0,
        under_way_seconds=under_way,
        timing_seconds_left=left,
    )


def _under_way(progress: Mapping[str, Any], now: float) -> float:
    return max(now - float(progress.get("since") or 0.0), 0.0)


def _timing_left(progress: Mapping[str, Any], now: float) -> float | None:
    left = progress.get("timing_seconds_left")
    return None if left is None else max(left - _under_way(progress, now), 0.0)


def _of_check(spec: Mapping[str, Any], progress: Mapping[str, Any], now: float) -> float | None:
    """Return the seconds left for a check of one size, by its steps so far."""
    step, steps = progress.get("step", 0), so_far(spec, progress, ()).soak_steps
    if progress.get("phase") != "soaking" or step < 2:
        return None
    return float(_under_way(progress, now) / (step - 1) * max(steps - step + 1, 1))


def _of_estimate(progress: Mapping[str, Any], now: float) -> float | None:
    phases, loading = progress["phases"], progress.get("import_seconds")
    cards, done = progress.get("cards", progress.get("cards_wanted", 1)), progress.get("cards_done", 0)
    begun = phases.get("predicting")
    if turn := progress.get("turn"):
        number, count, first_at = turn
        whole = first_at - (loading or 0.0)  # the request itself was traced and predicted by then
        each = (now - first_at) / (number - 1) if number > 1 else max(whole, 0.0)
        return float(each * (count - number + 1))
    if begun is not None and done >= CARDS_NEEDED:
        return float((now - begun) / done * (cards - done))
    if loading is None or (cards == 1 and done):  # after a single card, other settings or sizes may follow
        return None
    of_cards = CARD_OF_IMPORT * loading * (cards - done)
    tracing = TRACE_OF_IMPORT * loading
    since = float(progress.get("stage_since") or 0.0)
    return float(of_cards + (max(tracing - (now - since), 0.1 * tracing) if begun is None else 0.0))


def _of_validation(progress: Mapping[str, Any], is_compile: bool, now: float) -> float | None:
    """Return the seconds left by the forward passes or the compiling: what follows takes a known share of these."""
    measured, phases = progress.get("measured") or [], progress.get("phases") or {}
    begun = phases.get("compiling") if is_compile else next(iter(measured), None)
    if begun is None:
        return None
    share = AGAIN_OF_COMPILE if is_compile else BACKWARD_OF_FORWARD
    if len(measured) > 1:
        took = measured[1] - begun
        return float(max(share * took - (now - measured[1]), 0.1 * took))
    return float(max(COMPILE_SECONDS, 1.1 * (now - begun)) * (1 + share) - (now - begun)) if is_compile else None
