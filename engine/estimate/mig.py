"""PURE: the slices that a card can be divided into (MIG, Multi-Instance GPU), by the names of the vendor's user guide.

A slice has less memory than its name says: of an H200's 1g.18gb a driver gives 16.00 GiB; `USABLE_FRACTION` is just
below the smallest share seen. Profiles with media extensions (+me) and of the whole card are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..text.units import GIB

USABLE_FRACTION = 0.88
_40, _80 = (
    ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb"),
    ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"),
)
_PROFILES: Mapping[str, tuple[str, ...]] = {
    "a100-40gb": _40,
    "a100-40gb-pcie": _40,
    "a100-80gb": _80,
    "a100-80gb-pcie": _80,
    "h100-80gb": _80,
    "h100-80gb-pcie": _80,
    "h200": ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb"),
    "b200": ("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb"),
}


@dataclass(frozen=True, slots=True)
class MigSlice:
    """One profile, with the least memory of an instance."""

    profile: str
    usable_bytes: int


def slices(gpu_id: str) -> tuple[MigSlice, ...]:
    """Return the profiles of a card, the smallest first; none for a card that cannot be divided."""
    found = ((profile, int(profile.partition(".")[2].removesuffix("gb"))) for profile in _PROFILES.get(gpu_id, ()))
    return tuple(MigSlice(profile, int(gigabytes * GIB * USABLE_FRACTION)) for profile, gigabytes in found)


def smallest_slice(gpu_id: str, needed_bytes: float) -> MigSlice | None:
    return next((each for each in slices(gpu_id) if each.usable_bytes >= needed_bytes), None)
