"""PURE: from the training of a catalogue's model on several ranks to what is tuned, and what is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ...errors import DeviceUnavailable, SpecError
from ...facts.result import DeviceFacts
from ...settings.rank_settings import OF_STARTS, RankStarts
from ...settings.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec
from ...text.units import format_bytes
from .ranked_command import trained_on_ranks
from .spec import Limits, TuneSpec

NOT_ON_RANKS = {
    "torch_compile": "is measured on one device: compiling several ranks at once is not offered",
    "expandable_segments": "is set by PYTORCH_ALLOC_CONF=expandable_segments:True for ranks",
    "check_batch_size": "is for one device: of ranks the limit is searched",
}
AS_THEY_ARE = RankStarts()
_SHARED = tuple(each.name for each in fields(Limits) if each.name not in ("sizes", "compare_speed"))


def requested_spec(given: Mapping[str, Any]) -> RunSpec | TuneSpec:
    """Read what is requested of a model of the catalogue: on one device, or of ranks. Raises SpecError, by field."""
    starts = RankStarts(**{name: given[name] for name in OF_STARTS if name in given})
    training = {name: value for name, value in given.items() if name not in OF_STARTS}
    return spec_of_starts(RunSpec.from_dict(with_ranks(training, starts)), starts)


def with_ranks(given: dict[str, Any], starts: RankStarts) -> dict[str, Any]:
    """Return the settings of a training; ranks to emulate are ranks of the training, too. Raises SpecError."""
    if starts.emulate_ranks is None:
        return given
    if given.get("ranks", 1) not in (1, starts.emulate_ranks):
        raise SpecError("emulate_ranks", f"stands in for all {given['ranks']} ranks: leave one of both out")
    return {**given, "ranks": starts.emulate_ranks}


def spec_of_starts(spec: RunSpec, starts: RankStarts) -> RunSpec | TuneSpec:
    """Return what is measured: the training on one device, or the starts of its ranks. Raises SpecError."""
    if spec.ranks > 1:
        return ranked_spec(spec, starts)
    if starts.rank is not None:
        raise SpecError("rank", "is for several ranks: give 2 or more, or emulate_ranks")
    return spec if starts.compare_speed is None else replace(spec, compare_speed=starts.compare_speed)


def ranked_spec(spec: RunSpec, starts: RankStarts = AS_THEY_ARE) -> TuneSpec:
    """Return what is tuned. The price is that of all their devices. Raises SpecError, naming the field."""
    for name, why in NOT_ON_RANKS.items():
        if getattr(spec, name):
            raise SpecError(name, why)
    if starts.emulate_ranks is None and ":" in spec.device:
        text = f"{spec.device} is one GPU, and {spec.ranks} ranks need one each: name the kind alone, such as cuda"
        raise SpecError("device", text)
    shared = {name: getattr(spec, name) for name in _SHARED}
    shared["price_per_hour_usd"] *= _devices_priced(spec.ranks, spec.device, starts.emulate_ranks)
    return TuneSpec(
        catalogue=trained_on_ranks(spec),
        **shared,
        compare_speed=starts.compare_speed is not False,
        emulate_ranks=starts.emulate_ranks,
        rank=None if starts.rank is None else tuple(starts.rank),
        communication_bytes=spec.communication_bytes,
    )


def request_in(stored_spec: Mapping[str, Any]) -> dict[str, Any]:
    trained = stored_spec["catalogue"]
    found = {name: stored_spec[name] for name in (*_SHARED, *OF_STARTS, "communication_bytes")}
    found["price_per_hour_usd"] /= _devices_priced(
        trained["ranks"], stored_spec["device"], stored_spec["emulate_ranks"]
    )
    if stored_spec["emulate_ranks"] is not None or found["compare_speed"]:  # follows, or is the default
        del found["compare_speed"]
    return {**trained, **{name: value for name, value in found.items() if value is not None}}


def on_seen_device(spec: TuneSpec, seen: Sequence[DeviceFacts]) -> TuneSpec:
    """Return the spec at the price of the device that `auto` came to: ranks of a CPU share it."""
    if spec.catalogue is None or spec.emulated_ranks or spec.device != "auto" or seen[0].kind != "cpu":
        return spec
    return replace(spec, device="cpu", price_per_hour_usd=spec.price_per_hour_usd / spec.catalogue["ranks"])


def _devices_priced(ranks: int, device: str, emulate_ranks: int | None) -> int:
    """Return how many devices a group of ranks pays for: those of one CPU share it."""
    return 1 if device == "cpu" and emulate_ranks is None else ranks


def check_devices(spec: TuneSpec, seen: Sequence[DeviceFacts]) -> None:
    """Raise DeviceUnavailable for fewer listed GPUs than ranks, SpecError for ranks that would fill this host."""
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
