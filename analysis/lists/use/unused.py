"""PURE: memory left unused at today's batch size, and what a change saves: by person, by training, and for the lab.

A setting that was measured often counts once, its memory by its newest run and its saving by the newest with speeds:
adding up all runs would count it as often as it was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Self, TypeVar

from analysis.formatting import usd
from engine.text.units import format_least_usd

FIGURES = (
    *("current_batch_size", "current_waste_bytes", "limit_bytes"),
    *("recommended_batch_size", "recommended_memory_bytes"),
    *("claimed_saving_per_year_usd", "saving_per_year_usd", "saving_per_year_usd_low"),
)
"""The columns of a run that `MeasuredSetting` is read from."""
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MeasuredSetting:
    """What a finished run found about the setting it measured. None: it was not measured.

    `unused_bytes` of `limit_bytes` are left unused at today's batch size; `advised_bytes` are those of them that the
    recommended size would use, None where no other size is recommended. `saving_usd` is what that size would save in a
    year, 0 where none is shown, `is_least` whether only its lower bound is known.
    """

    setting: Hashable
    unused_bytes: int | None
    limit_bytes: int | None
    saving_usd: float | None
    is_least: bool = False
    advised_bytes: int | None = None
    training: str = ""
    is_own: bool = False
    person: str | None = None
    device_id: int | None = None
    day: date | None = None

    @classmethod
    def of(cls, run: Mapping[str, Any], setting: Hashable, **known: Any) -> Self:
        claimed, low = run["claimed_saving_per_year_usd"], run["saving_per_year_usd_low"]
        is_shown = run["recommended_batch_size"] is not None and (low is None or low > 0)
        unused, limit, advised = run["current_waste_bytes"], run["limit_bytes"], run["recommended_memory_bytes"]
        is_advised = run["recommended_batch_size"] != run["current_batch_size"] and advised is not None
        is_known = unused is not None and limit is not None
        return cls(
            setting,
            unused,
            limit,
            saving_usd=claimed if claimed is None or (claimed > 0 and is_shown) else 0.0,
            is_least=run["saving_per_year_usd"] is None,
            # what the recommended size takes more than today's
            advised_bytes=max(0, advised - (limit - unused)) if is_known and is_advised else None,
            **known,
        )

    @property
    def has_figure(self) -> bool:
        return self.unused_bytes is not None and bool(self.limit_bytes)


def _newest(runs: Iterable[MeasuredSetting]) -> list[MeasuredSetting]:
    """Return the newest run of each setting of these, given newest first."""
    newest: dict[Hashable, MeasuredSetting] = {}
    for run in runs:
        newest.setdefault(run.setting, run)
    return list(newest.values())


@dataclass(frozen=True, slots=True)
class Unused:
    """What several runs leave unused and would save. None: no run measured it; 0 was measured.

    `setting_count` are the settings whose unused memory was measured, `advised_count` those of them with another size
    recommended: of the others nothing says that using more gains anything. `is_least`: the saving is a lower bound.
    """

    run_count: int
    setting_count: int
    unused_bytes: int | None
    of_bytes: int | None
    advised_bytes: int
    advised_count: int
    saving_usd: float | None
    saving_count: int
    is_least: bool

    @classmethod
    def of(cls, runs: Iterable[MeasuredSetting]) -> Self:
        """Add up these runs, given newest first."""
        runs = list(runs)
        known = [run for run in _newest(runs) if run.has_figure]
        advised = [run.advised_bytes for run in known if run.advised_bytes is not None]
        compared = _newest(run for run in runs if run.saving_usd is not None)  # one on a busy machine has no speeds
        saving = [run for run in compared if run.saving_usd]
        return cls(
            run_count=len(runs),
            setting_count=len(known),
            unused_bytes=sum(run.unused_bytes or 0 for run in known) if known else None,
            of_bytes=sum(run.limit_bytes or 0 for run in known) if known else None,
            advised_bytes=sum(advised),
            advised_count=len(advised),
            saving_usd=sum(run.saving_usd or 0.0 for run in saving) if compared else None,
            saving_count=len(saving),
            is_least=any(run.is_least for run in saving),
        )

    @property
    def fraction(self) -> float | None:
        return self.unused_bytes / self.of_bytes if self.unused_bytes is not None and self.of_bytes else None

    @property
    def saving_text(self) -> str:
        """Write the saving of a year; "at least" where it holds lower bounds, empty where none was measured."""
        if self.saving_usd is None:
            return ""
        return f"at least {format_least_usd(self.saving_usd)}" if self.is_least else usd(self.saving_usd)


def unused_by(runs: Iterable[MeasuredSetting], key: Callable[[MeasuredSetting], Key]) -> dict[Key, Unused]:
    """Add up the runs of each key, given newest first; the key with the most to save comes first, then most unused."""
    groups: dict[Key, list[MeasuredSetting]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    added = [(each, Unused.of(group)) for each, group in groups.items()]

    def order(one: tuple[Key, Unused]) -> tuple[float, int, int, str]:
        key, unused = one
        return -(unused.saving_usd or 0.0), -(unused.unused_bytes or 0), -unused.run_count, str(key or "")

    return dict(sorted(added, key=order))
