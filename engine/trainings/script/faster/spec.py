"""PURE: what is requested of `tune --faster`: a command, and which of the variants are tried."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import SpecError
from ....settings.spec_checks import not_offered
from ..spec import TuneSpec
from .variants import BY_NAME, VARIANTS, Variant

OWN = "own"
"""The way of a command that names no batch size: it trains with its own."""
UNUSED = (
    *("batch_in", "start_batch_size", "max_batch_size", "soak_steps", "sizes", "whole_run", "compare_speed"),
    *("memory_limit_bytes", "reserve_fraction", "reserve_bytes"),
)
"""Settings of a search, which a race at one batch size has no use for."""


@dataclass(frozen=True, slots=True)
class OwnRaceSpec(TuneSpec):
    """One command to be made faster at today's batch size. Raises SpecError, naming the field."""

    tried: tuple[str, ...] = ()
    """The names of the variants that are tried; empty: all that apply."""

    def __post_init__(self) -> None:
        TuneSpec.__post_init__(self)
        if not isinstance(self.tried, (list, tuple)) or not all(isinstance(name, str) for name in self.tried):
            raise SpecError("tried", "must be a list of names")
        object.__setattr__(self, "tried", tuple(self.tried))
        for name in self.tried:
            if name not in BY_NAME:
                raise SpecError("tried", not_offered(name, tuple(BY_NAME)))

    def _check_way(self) -> None:
        """Raise SpecError unless the batch size gets in; a command without a place for it trains with its own."""
        if self.batch == OWN and not self.has_placeholder:
            return
        TuneSpec._check_way(self)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(each for each in VARIANTS if not self.tried or each.name in self.tried)
