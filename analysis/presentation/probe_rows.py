"""Rows of the probe tables, live and finished alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from analysis.charts.curves import ROLE_WORDS
from analysis.models import Measurement
from engine.describe.probe import OUTCOMES, PURPOSES, shown_throughput
from engine.facts.result import Outcome, Probe, Purpose
from engine.questions.documents.estimated import EstimatedCard

_MARKS = {
    Outcome.FITS: ("✓", "fits"),
    Outcome.OUT_OF_MEMORY: ("✕", "refused"),
    Outcome.SIZE_LIMIT: ("▲", "limited"),
    Outcome.ERROR: ("!", "limited"),
}


@dataclass(frozen=True, slots=True)
class ProbeLine:
    probe: Probe
    icon: str
    word: str
    css_class: str
    notes: tuple[str, ...]
    is_recommended: bool
    estimated_bytes: int | None = None
    """The predicted allocation; None where there is no prediction for this size."""

    @property
    def phase(self) -> str:
        return (self.probe.peak_phase or self.probe.failed_phase or "").replace("_", " ")

    @property
    def samples_per_second(self) -> float | None:
        return shown_throughput(self.probe)

    @property
    def is_timed_without_figure(self) -> bool:
        """Whether it was timed alone without a claim of speed: its row would hold nothing but dashes."""
        probe = self.probe
        is_timing = probe.purpose is Purpose.TIMING and probe.fits
        return is_timing and probe.peak_allocated_bytes is None and probe.samples_per_second is None


ProbeKey = tuple[int, str, float]


def probe_key(probe: Probe | Measurement) -> ProbeKey:
    return (probe.batch_size, str(probe.purpose), probe.wall_seconds)


def probe_lines(
    probes: Iterable[Probe],
    roles: Mapping[str, int | None],
    carried: Collection[ProbeKey] = (),
    estimate: EstimatedCard | None = None,
) -> list[ProbeLine]:
    """Return the lines in the order of the probes. `carried`: measured in an earlier attempt."""
    estimated = {point.batch_size: point.peak_allocated_bytes for point in estimate.points} if estimate else {}
    lines = []
    for probe in probes:
        outcome, size = probe.outcome, probe.batch_size
        icon, css_class = _MARKS[outcome]
        held = [label for role, label in ROLE_WORDS.items() if roles.get(role) == size]
        carried_over = "carried over" if probe_key(probe) in carried else None
        notes = (*held, *filter(None, (PURPOSES.get(probe.purpose), carried_over)))
        is_recommended = roles.get("recommended") == size
        lines.append(ProbeLine(probe, icon, OUTCOMES[outcome], css_class, notes, is_recommended, estimated.get(size)))
    return lines
