"""What is requested: a training of a catalogue model, and the changes that race against it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import SpecError
from ...race.variants import CHANGES
from ...settings.setting import Role, setting
from ...settings.spec import SETTINGS as RUN_SETTINGS
from ...settings.spec import RunSpec, shared_setting
from ...settings.spec_checks import not_offered, settings_of
from ...settings.training_ranks import check_measured
from ...settings.training_spec import TrainingSpec


@dataclass(frozen=True, slots=True)
class FasterSpec(TrainingSpec):
    """One race. Its training settings are those of today. Raises SpecError, naming the field."""

    tried: str | None = setting(
        Role.LIMIT,
        "Changes to try",
        f"Changes that race, by their names, with commas: {', '.join(CHANGES)}. Left out: all that apply.",
        default=None,
        option="--try",
        metavar="NAMES",
    )
    current_batch_size: int = shared_setting("current_batch_size")
    memory_limit_bytes: int | None = shared_setting("memory_limit_bytes")
    max_batch_size: int = shared_setting("max_batch_size")
    reserve_fraction: float = shared_setting("reserve_fraction")
    reserve_bytes: int | None = shared_setting("reserve_bytes")
    time_budget_seconds: float = shared_setting("time_budget_seconds")
    price_per_hour_usd: float = shared_setting("price_per_hour_usd")
    hours_per_run: float = shared_setting("hours_per_run")
    runs_per_year: int = shared_setting("runs_per_year")

    def __post_init__(self) -> None:
        TrainingSpec.__post_init__(self)
        check_measured(self)
        for name in self.wanted:
            if name not in CHANGES:
                raise SpecError("tried", not_offered(name, tuple(CHANGES)))
        self.run_spec()

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the changes that are requested; empty: all that apply."""
        names = (name.strip() for name in (self.tried or "").split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    @classmethod
    def of(cls, spec: RunSpec) -> FasterSpec:
        """Return the race of a training's settings, with all changes that apply. Raises SpecError."""
        return cls(**{name: getattr(spec, name) for name in SETTINGS if name in RUN_SETTINGS})

    def run_spec(self) -> RunSpec:
        return RunSpec(**{name: getattr(self, name) for name in RUN_SETTINGS if name in SETTINGS})


SETTINGS = settings_of(FasterSpec)
