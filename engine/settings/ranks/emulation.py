"""PURE: which ranks of a training one device stands in for, one after the other, and what their exchange would hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ...text.units import MIB

FEWEST_RANKS, MOST_RANKS, MOST_STARTED, MOST_BYTES = 2, 65_536, 64, 2**40
NCCL_SOURCE = "NCCL issue 964, A100"
_NCCL_OF_TWO_BYTES, _NCCL_OF_MORE_BYTES = 544 * MIB, 688 * MIB


@dataclass(frozen=True, slots=True)
class EmulatedRank:
    """What the process that stands in for a rank has to know; `folder` holds what earlier ranks broadcast.

    `communication_bytes` is what the library that connects the ranks would take on a card, outside the allocator.
    """

    rank: int
    size: int
    communication_bytes: int
    folder: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The environment that a launcher gives its ranks: this one has the first device of its host."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": str(self.size),
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": "emulated",  # Lightning starts its own ranks unless a launcher did
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
        }


def ranks_of(size: int, named: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the ranks to stand in for, in order: the named ones, or the first two and the last, which often differ.

    >>> ranks_of(8), ranks_of(2)
    ((0, 1, 7), (0, 1))
    >>> ranks_of(8, (7, 0))  # a result holds what each took in this order
    (0, 7)
    """
    return tuple(sorted({0, 1, size - 1} if named is None else {*named}))


def emulated_ranks(
    size: int | None, named: Sequence[int] | None = None, held_bytes: int | None = None
) -> tuple[EmulatedRank, ...]:
    """Return the ranks that a device stands in for; none where no number of ranks is given."""
    if size is None:
        return ()
    held_bytes = communication_bytes(size) if held_bytes is None else held_bytes
    return tuple(EmulatedRank(rank, size, held_bytes) for rank in ranks_of(size, named))


def limit_left(ranks: Sequence[EmulatedRank], limit_bytes: int | None, capacity_bytes: int) -> int | None:
    """Return what a training may hold on a card where what would connect these ranks is kept free of its limit."""
    held_bytes = max((each.communication_bytes for each in ranks), default=0)
    return max((limit_bytes or capacity_bytes) - held_bytes, 1) if held_bytes else limit_bytes


def wrong_emulation(size: object, named: Sequence[object] | None, held_bytes: object) -> tuple[str, str] | None:
    """Return the field that does not allow the ranks to be stood in for, and why; None where they can be."""
    if size is None:
        field = "rank" if named is not None else "communication_bytes" if held_bytes is not None else None
        return None if field is None else (field, "is for --emulate-ranks N: one device then stands in for ranks of N")
    if not _is_whole(size, FEWEST_RANKS, MOST_RANKS):
        return "emulate_ranks", f"must be a whole number from {FEWEST_RANKS} to {MOST_RANKS:,}"
    for each in named or ():
        if not _is_whole(each, 0, int(size) - 1):
            return "rank", f"{str(each)[:80]} is no rank of {size}: they are 0 to {int(size) - 1}"
    if named is not None and (not 0 < len(named) <= MOST_STARTED or len({*named}) < len(named)):
        return "rank", f"must name 1 to {MOST_STARTED} different ranks"
    if held_bytes is not None and not _is_whole(held_bytes, 0, MOST_BYTES):
        return "communication_bytes", "must be a whole number of bytes, 0 or more"
    return None


def _is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def communication_bytes(size: int) -> int:
    """Return what NCCL takes on a card for one group of so many ranks, as it was read there; see `NCCL_SOURCE`."""
    return _NCCL_OF_TWO_BYTES if size == FEWEST_RANKS else _NCCL_OF_MORE_BYTES
