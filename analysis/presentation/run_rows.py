"""Rows of the list of runs, from columns alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from analysis.formatting import factor, percent, usd
from analysis.models import Run, State
from analysis.presentation import labels, run_state
from analysis.presentation.kinds import presentation_of, run_place, settings_of_run
from analysis.presentation.kinds.presentation import Presentation
from analysis.presentation.labels import Chip
from analysis.presentation.origin import describe_origin
from analysis.runs.queue.forecast import QueuePosition
from engine.describe.speed import FASTER, NO_GAIN, NOT_KNOWN
from engine.facts.result import Reason
from engine.race.speed.claim import describe_bounds, describe_lower_bound
from engine.settings.spec import DEFAULTS
from engine.text.units import format_factor_range, format_least_usd


@dataclass(frozen=True, slots=True)
class HistoryRow:
    run: Run
    model_name: str
    device_name: str
    settings: str
    chip: Chip
    turn: str
    origin: str | None = None

    @property
    def kind(self) -> Presentation:
        return presentation_of(self.run)

    @property
    def state_chip(self) -> Chip:
        """Return the state; of a search that has ended whether its size is certified, which says more."""
        if self.run.state != State.FINISHED or self.run.certified is None:
            return self.chip
        if self.does_not_fit:
            return replace(self.chip, icon="✕", word="does not fit", css_class="chip-bad")
        if self.run.certified:
            return replace(self.chip, word="certified")
        return replace(self.chip, word="not certified", css_class="")

    @property
    def took_seconds(self) -> float | None:
        if self.run.finished_at is None or self.run.started_at is None:
            return None
        return (self.run.finished_at - self.run.started_at).total_seconds()

    @property
    def does_not_fit(self) -> bool:
        return self.run.boundary_reason == Reason.DOES_NOT_FIT

    @property
    def answer(self) -> str:
        """Write what the run found: "Use 56", "Up to 60", "At least 60", "Does not fit"; empty before a result."""
        run = self.run
        if self.does_not_fit:
            return "Does not fit"
        if run.recommended_batch_size is not None:
            return f"Use {run.recommended_batch_size:,}"
        if not run.largest_batch_size:
            return ""
        return f"{'Up to' if run.certified else 'At least'} {run.largest_batch_size:,}"

    @property
    def unused_share(self) -> str:
        """Write the share of memory that today's batch size leaves unused: "60.9 %"; empty where it is unknown."""
        unused, limit = self.run.current_waste_bytes, self.run.limit_bytes
        return percent(unused / limit) if unused is not None and limit else ""

    @property
    def cards(self) -> str:
        """Write "34 of 34 GPUs" for an estimate of all GPUs that has ended."""
        run = self.run
        return "" if run.estimated_cards is None else f"{run.estimated_cards_that_fit} of {run.estimated_cards} GPUs"

    @property
    def speedup(self) -> str:
        """Write "1.39x"; "≥ 2x" where only a lower bound is claimed; empty where nothing was compared."""
        run = self.run
        if run.claimed_speedup is None:
            if run.recommended_batch_size and run.is_speed_measurable is False and not self.keeps_today:
                return FASTER
            was_not_compared = run.is_speed_measurable is None or run.largest_batch_size is None
            is_unclear = not (was_not_compared or run.boundary_reason == Reason.TIME_BUDGET)
            return NOT_KNOWN if is_unclear and self.kind.compares_speeds(run.spec) else ""
        if run.speedup is None:
            return f"≥ {describe_lower_bound(run.claimed_speedup)}"
        return NO_GAIN if self.keeps_today else factor(run.speedup)

    @property
    def keeps_today(self) -> bool:
        run = self.run
        return run.recommended_batch_size is not None and run.recommended_batch_size == run.current_batch_size

    @property
    def speedup_interval(self) -> str:
        """Write "1.36 to 1.42x"; empty where there is none, or no gain."""
        run = self.run
        if run.claimed_speedup is None or self.keeps_today:
            return ""
        if run.speedup is None and run.speedup_low is not None and run.speedup_high is not None:
            return describe_bounds(run.speedup_low, run.speedup_high)
        return format_factor_range(run.speedup_low, run.speedup_high)

    @property
    def saving(self) -> str:
        """Write the yearly saving: "$34.00", "≥ $60.00" as a lower bound; empty if unknown or without gain."""
        run = self.run
        if run.claimed_saving_per_year_usd is None or self.keeps_today:
            return ""
        if run.saving_per_year_usd is None:
            return f"≥ {format_least_usd(run.claimed_saving_per_year_usd)}"
        return usd(run.saving_per_year_usd)

    @property
    def estimated_bound(self) -> str:
        """Write "≥" before the largest size of an estimate whose search stopped at its own maximum, else "≈"."""
        most = self.run.spec.get("max_batch_size", DEFAULTS["max_batch_size"])
        return "≥" if self.run.estimated_largest_batch_size == most else "≈"


def _device_name(run: Run) -> str:
    name = labels.short_device_name(run.device_name)
    return labels.describe_several(name, run.device_count) if name else run_place(run)


def history_rows(runs: Iterable[Run], positions: Mapping[int, QueuePosition]) -> list[HistoryRow]:
    return [
        HistoryRow(
            run=run,
            model_name=labels.model_name(run.model),
            device_name=_device_name(run),
            settings=" · ".join(settings_of_run(run)),
            chip=presentation_of(run).chip(run) or run_state.chip(run),
            turn=run_state.describe_queue_position(turn) if (turn := positions.get(run.pk)) else "",
            origin=describe_origin(run),
        )
        for run in runs
    ]
