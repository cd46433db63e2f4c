"""Rows of the probe tables, live and finished alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from analysis.presentation.charts.curves import ProbeRow
from analysis.presentation.stored_estimate import StoredEstimate
from engine.result import Outcome, Purpose

_OUTCOMES = {
    Outcome.FITS: ("✓", "fits", "fits"),
    Outcome.OUT_OF_MEMORY: ("✕", "out of memory", "refused"),
    Outcome.SIZE_LIMIT: ("▲", "size limit", "limited"),
    Outcome.ERROR: ("!", "failed", "limited"),
}
_ROLES = {"recommended": "recommended", "fastest": "fastest", "largest": "largest", "current": "today"}
_PURPOSES = {
    Purpose.CONFIRM: "confirmed in a fresh process",
    Purpose.SOAK: "long run",
    Purpose.CURVE: "for the curve",
    Purpose.TIMING: "timed in turns",
}


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """One probe with the text around it."""

    probe: ProbeRow
    icon: str
    word: str
    css_class: str
    notes: tuple[str, ...]
    is_recommended: bool
    estimated_bytes: int | None = None
    """The predicted allocation; None where there is no prediction for this size."""

    @property
    def phase(self) -> str:
        """The phase of the peak or of the failure, as text; empty when unknown."""
        return (self.probe.peak_phase or self.probe.failed_phase or "").replace("_", " ")


ProbeKey = tuple[int, str, float]


def probe_key(probe: ProbeRow) -> ProbeKey:
    """Return the key that identifies a probe, whether stored as a row or in a result."""
    return (probe.batch_size, str(probe.purpose), probe.wall_seconds)


def probe_lines(
    probes: Iterable[ProbeRow],
    roles: Mapping[str, int | None],
    carried: Collection[ProbeKey] = (),
    estimate: StoredEstimate | None = None,
) -> list[ProbeLine]:
    """Return the lines in the order of the probes. `carried`: measured in an earlier attempt."""
    estimated = {point.batch_size: point.peak_allocated_bytes for point in estimate.points} if estimate else {}
    return [_line(probe, roles, probe_key(probe) in carried, estimated) for probe in probes]


def _line(
    probe: ProbeRow, roles: Mapping[str, int | None], is_carried: bool, estimated: Mapping[int, int]
) -> ProbeLine:
    icon, word, css_class = _OUTCOMES[Outcome(probe.outcome)]
    held = [label for role, label in _ROLES.items() if roles.get(role) == probe.batch_size]
    purpose = _PURPOSES.get(Purpose(probe.purpose))
    is_recommended = roles.get("recommended") == probe.batch_size
    notes = (*held, *([purpose] if purpose else []), *(["carried over"] if is_carried else []))
    return ProbeLine(probe, icon, word, css_class, notes, is_recommended, estimated.get(probe.batch_size))
