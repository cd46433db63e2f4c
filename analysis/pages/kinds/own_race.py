"""The page of a race of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.pages.kinds.race import Race
from analysis.presentation.stored.own_race import read_own_race
from analysis.presentation.stored.race import StoredRace


class OwnRace(Race):
    """It has the page of a race of settings."""

    def read(self, result: Mapping[str, Any]) -> StoredRace:
        return read_own_race(result)
