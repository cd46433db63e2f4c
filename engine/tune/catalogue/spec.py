"""PURE: from the training of a catalogue's model on several ranks to what is tuned, and what is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from ...errors import DeviceUnavailable, SpecError
from ...results.result import DeviceFacts
from ...spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec
from ...text.units import format_bytes
from ..spec import BATCH_SIZE, Limits, TuneSpec
from .command import ranked_command

NOT_ON_RANKS = {
    "torch_compile": "is measured on one device: compiling several ranks at once is not offered",
    "expandable_segments": "is set by PYTORCH_ALLOC_CONF=expandable_segments:True for ranks",
    "check_batch_size": "is for one device: of ranks the limit is searched",
}
_SHARED = tuple(each.name for each in fields(Limits) if each.name not in ("sizes", "compare_speed"))


def ranked_spec(
    spec: RunSpec,
    *,
    emulates: bool = False,
    rank: Sequence[int] | None = None,
    compare_speed: bool = True,
) -> TuneSpec:
    """Return what is tuned. The price is that of all ranks' devices. Raises SpecError, naming the field."""
    for name, why in NOT_ON_RANKS.items():
        if getattr(spec, name):
            raise SpecError(name, why)
    if not emulates and ":" in spec.device:
        raise SpecError(
            "device", f"{spec.device} is one GPU, and {spec.ranks} ranks need one each: leave the number out"
        )
    shared = {name: getattr(spec, name) for name in _SHARED}
    return TuneSpec(
        ranked_command(spec, BATCH_SIZE),
        **{**shared, "price_per_hour_usd": spec.ranks * spec.price_per_hour_usd},
        compare_speed=compare_speed,
        emulate_ranks=spec.ranks if emulates else None,
        rank=None if rank is None else tuple(rank),
        communication_bytes=spec.communication_bytes,
    )


def check_devices(spec: TuneSpec, seen: Sequence[DeviceFacts]) -> None:
    """Raise DeviceUnavailable for fewer GPUs than ranks, SpecError for ranks that would fill this host's memory.

    Where a driver does not list its cards, the ranks find out themselves.
    """
    if spec.catalogue is None or spec.emulated_ranks:
        return
    ranks, first = int(spec.catalogue["ranks"]), seen[0]
    if first.kind == "cpu":
        each = spec.memory_limit_bytes or min(CPU_DEFAULT_LIMIT_BYTES, first.capacity_bytes)
        if ranks * each > first.capacity_bytes:
            raise SpecError(
                "memory_limit_bytes",
                f"{ranks} ranks of {format_bytes(each)} are more than the {format_bytes(first.capacity_bytes)} of "
                "this host; give less for each",
            )
    elif len(seen) < ranks and all(each.uuid for each in seen):
        raise DeviceUnavailable(f"{ranks} ranks need a GPU each, and {len(seen)} can be seen here")
