"""Rows of the probe tables, live and finished alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.charts.curves import ProbeRow
from engine.result import Outcome, Purpose

_OUTCOMES = {
    Outcome.FITS: ("✓", "fits", "fits"),
    Outcome.OUT_OF_MEMORY: ("✕", "out of memory", "refused"),
    Outcome.SIZE_LIMIT: ("▲", "size limit", "limited"),
}
_ROLES = {"recommended": "recommended", "fastest": "fastest", "largest": "largest", "current": "today"}
_PURPOSES = {
    Purpose.CONFIRM: "confirmed in a fresh process",
    Purpose.SOAK: "long run",
    Purpose.CURVE: "for the curve",
    Purpose.TIMING: "timed again",
}


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """One probe with the words around it."""

    probe: ProbeRow
    icon: str
    word: str
    css_class: str
    notes: tuple[str, ...]
    is_recommended: bool

    @property
    def phase(self) -> str:
        """Where the peak was, or where it failed: "optimizer_step" in words; empty when not known."""
        return (self.probe.peak_phase or self.probe.failed_phase or "").replace("_", " ")


def probe_lines(probes: Iterable[ProbeRow], roles: Mapping[str, int | None]) -> list[ProbeLine]:
    """In the order given, which is the order they were run."""
    return [_line(probe, roles) for probe in probes]


def _line(probe: ProbeRow, roles: Mapping[str, int | None]) -> ProbeLine:
    icon, word, css_class = _OUTCOMES[Outcome(probe.outcome)]
    held = [words for role, words in _ROLES.items() if roles.get(role) == probe.batch_size]
    purpose = _PURPOSES.get(Purpose(probe.purpose))
    is_recommended = roles.get("recommended") == probe.batch_size
    return ProbeLine(probe, icon, word, css_class, (*held, *([purpose] if purpose else [])), is_recommended)
