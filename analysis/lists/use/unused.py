"""PURE: memory left unused at today's batch size, added up by person and by training.

A setting that was measured often counts once, by its newest run: adding up all runs would count it as often as it was
measured. A setting is what makes runs comparable over time: see `runs.columns.series`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from analysis.presentation.formatting import usd
from analysis.runs.columns.series import SeriesKey
from engine.text.units import format_least_usd


@dataclass(frozen=True, slots=True)
class MeasuredSetting:
    """What a finished run found about the setting it measured. None: it was not measured.

    `unused_bytes` of `limit_bytes` are left unused at today's batch size. `saving_usd` is what the recommended size
    would save in a year, 0 where none is shown, `is_least` whether only its lower bound is known. `advised_bytes` are
    those of `unused_bytes` that the recommended size would use.
    """

    person: str | None
    training: str
    is_own: bool
    setting: SeriesKey
    device_id: int | None
    unused_bytes: int | None
    limit_bytes: int | None
    saving_usd: float | None
    is_least: bool = False
    advised_bytes: int = 0
    day: date | None = None

    @property
    def has_figure(self) -> bool:
        return self.unused_bytes is not None and bool(self.limit_bytes)


@dataclass(frozen=True, slots=True)
class Unused:
    """One person, or one training. `setting_count` are the settings whose unused memory was measured."""

    name: str | None
    is_own: bool
    run_count: int
    setting_count: int
    unused_bytes: int | None
    of_bytes: int | None
    advised_bytes: int
    """Those of `unused_bytes` that the recommended sizes would use."""
    saving_usd: float | None
    is_least: bool

    @property
    def fraction(self) -> float | None:
        return self.unused_bytes / self.of_bytes if self.unused_bytes is not None and self.of_bytes else None

    @property
    def saving_text(self) -> str:
        """Write the saving of a year; "at least" where it holds lower bounds, empty where none was measured."""
        if not self.saving_usd:
            return "" if self.saving_usd is None else "no gain shown"
        amount = f"at least {format_least_usd(self.saving_usd)}" if self.is_least else usd(self.saving_usd)
        return f"{amount} a year"


def by_person(runs: Sequence[MeasuredSetting]) -> list[Unused]:
    return _added_up(runs, lambda run: run.person)


def by_person_and_day(runs: Sequence[MeasuredSetting]) -> dict[tuple[str | None, date], Unused]:
    groups: dict[tuple[str | None, date], list[MeasuredSetting]] = defaultdict(list)
    for run in runs:
        if run.day is not None:
            groups[run.person, run.day].append(run)
    return {key: _row(key[0], group) for key, group in groups.items()}


def by_training(runs: Sequence[MeasuredSetting]) -> list[Unused]:
    return _added_up(runs, lambda run: (run.training, run.is_own))


def _added_up(runs: Iterable[MeasuredSetting], key: Callable[[MeasuredSetting], Hashable]) -> list[Unused]:
    groups: dict[Hashable, list[MeasuredSetting]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    rows = [_row(key(group[0]), group) for group in groups.values()]
    return sorted(rows, key=lambda row: (-(row.unused_bytes or 0), -row.run_count, row.name or ""))


def _row(key: Hashable, group: Sequence[MeasuredSetting]) -> Unused:
    name, is_own = key if isinstance(key, tuple) else (key, False)
    newest: dict[SeriesKey, MeasuredSetting] = {}
    for run in group:
        newest.setdefault(run.setting, run)
    known = [run for run in newest.values() if run.has_figure]
    savings = [run for run in newest.values() if run.saving_usd is not None]
    return Unused(
        name=name,
        is_own=is_own,
        run_count=len(group),
        setting_count=len(known),
        unused_bytes=sum(run.unused_bytes or 0 for run in known) if known else None,
        of_bytes=sum(run.limit_bytes or 0 for run in known) if known else None,
        advised_bytes=sum(run.advised_bytes for run in known),
        saving_usd=sum(run.saving_usd or 0.0 for run in savings) if savings else None,
        is_least=any(run.is_least and run.saving_usd for run in savings),
    )
