"""The document of a race, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from ..faster.result import AtSize, Row
from ..race.field import Entry, RacedRound, RaceVerdict
from ..race.lines import Lines
from ..race.variants import NotTried
from ..results.intervals import Interval
from ..results.result import DeviceFacts, Probe, Savings
from ..results.speed_rounds import SpeedClaim
from ..spec import SCHEMA
from .stored import StoredSpec, from_document


@dataclass(frozen=True, slots=True)
class Raced:
    """A `FasterResult` as it was stored, with the headline that it was stored with."""

    spec: StoredSpec
    device: DeviceFacts
    batch_size: int
    rows: tuple[Row, ...]
    not_tried: tuple[NotTried, ...]
    at_today: RaceVerdict
    own_difference: float | None
    sizes: tuple[AtSize, ...]
    at_own_size: RaceVerdict | None
    chosen_batch_size: int
    chosen: Entry
    gain: Interval | None
    claim: SpeedClaim
    savings: Savings
    lines: tuple[Lines, ...]
    rounds: tuple[RacedRound, ...]
    rounds_of_sizes: tuple[RacedRound, ...]
    others_cores: float | None
    cores: int
    environment: dict[str, Any]
    total_seconds: float
    headline: str

    probes: ClassVar[tuple[Probe, ...]] = ()
    """The probes of its searches are of other settings than the run's."""
    what_to_change: ClassVar[None] = None

    def recorded_facts(self) -> dict[str, Any]:
        """Return what is known of the device and the software."""
        return {"device_name": self.device.name, "capacity_bytes": self.device.capacity_bytes, **self.environment}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        return from_document(cls, document)

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "device": self.device.to_dict()}
