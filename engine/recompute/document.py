"""Reads a document strictly: bounded in size, without unknown members, of the engine's own types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from ..errors import SpecError
from ..estimate.types import Estimate
from ..from_json import from_json
from ..results.memory_breakdown import MemoryBreakdown
from ..results.result import (
    Boundary,
    DeviceFacts,
    EstimateError,
    Point,
    Probe,
    RunResult,
    Savings,
    Speed,
    Timings,
    Waste,
)
from ..results.speed_rounds import SpeedRound
from ..spec import SCHEMA, RunSpec
from ..tune.spec import FunctionSpec, TuneSpec, read_tuned_spec
from ..tune.training import Training

MOST_VALUES, MOST_DEPTH, MOST_TEXT = 300_000, 24, 20_000
MOST_PROBES = 500
MOST_ROUNDS, MOST_SIZES, MOST_BLOCKS = 256, 64, 1_024
"""Limits of a comparison of speeds. Each round is decided again from those before it, so these bound the cost of a
document. No run comes near: a block takes at least 0.2 s, and all rounds beyond the fewest 60 s."""
MOST_INTEGER = 2**63 - 1
MOST_SECONDS = 1e9

FIRST_VERSION = "0.5.0"
"""The first version of the engine whose results hold all that is computed again: run key, host, rounds of timing."""

SPEC_OF_A_MODEL = (
    *("model", "device", "precision", "optimizer", "current_batch_size", "max_batch_size", "time_budget_seconds"),
    *("price_per_hour_usd", "hours_per_run", "runs_per_year"),
)
SPEC_OF_A_COMMAND = ("model", "device", "batch", "current_batch_size", "max_batch_size")
"""Fields of a spec that every version wrote and that pages read: a document that lacks one is refused."""

T = TypeVar("T")
Spec = RunSpec | TuneSpec | FunctionSpec


def check_limits(document: Any) -> None:
    """Raise SpecError for what no result contains: too many or too long values, deep nesting, bad numbers.

    Iterative, because a document may be deeper than Python's stack.
    """
    if not isinstance(document, Mapping):
        raise SpecError("result", "must be a JSON object")
    waiting: list[tuple[str, str, Any, int]] = [("result", "result", document, 0)]
    values = 0
    while waiting:
        path, name, value, depth = waiting.pop()
        values += 1
        if values > MOST_VALUES:
            raise SpecError("result", f"holds more than {MOST_VALUES:,} values")
        if depth > MOST_DEPTH:
            raise SpecError(path[:200], f"is deeper than {MOST_DEPTH} levels")
        if isinstance(value, Mapping):
            for key, member in value.items():
                if not isinstance(key, str) or len(key) > MOST_TEXT:
                    raise SpecError(path[:200], "has a member whose name is no text of usual length")
                waiting.append((key if path == "result" else f"{path}.{key}", key, member, depth + 1))
        elif isinstance(value, (list, tuple)):
            waiting += [(f"{path}[{place}]", name, member, depth + 1) for place, member in enumerate(value)]
        else:
            _check_value(path[:200], name, value)


def _check_value(path: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        if len(value) > MOST_TEXT:
            raise SpecError(path, f"is longer than {MOST_TEXT:,} characters")
        return
    if value is None or isinstance(value, bool):
        return
    if not isinstance(value, (int, float)):
        raise SpecError(path, "is no JSON value")
    if isinstance(value, int) and abs(value) > MOST_INTEGER or not math.isfinite(value):
        raise SpecError(path, "is no finite number of at most 63 bits")
    if name.endswith(("_bytes", "seconds")) and value < 0:
        raise SpecError(path, f"{value} is negative")
    if name.endswith("seconds") and value > MOST_SECONDS:
        raise SpecError(path, f"{value:g} is longer than any run")


@dataclass(frozen=True, slots=True)
class Claims:
    """A document of a measurement or a command, in the engine's types. `raw` is the document itself."""

    raw: Mapping[str, Any]
    spec: Spec
    device: DeviceFacts
    boundary: Boundary
    probes: tuple[Probe, ...]
    waste: Waste
    savings: Savings
    timings: Timings
    speed: Speed | None
    speed_rounds: tuple[SpeedRound, ...]
    estimate: Estimate | None
    memory_breakdown: MemoryBreakdown | None
    training: Training | None

    @property
    def limit_bytes(self) -> int:
        return self.device.limit_bytes or self.device.capacity_bytes

    def points(self) -> Iterator[tuple[str, int]]:
        """Yield the points of the answer with their batch sizes."""
        for name in _POINTS:
            if self.raw.get(name) is not None:
                yield name, self.raw[name]["batch_size"]


_POINTS = ("largest", "fastest", "recommended", "current", "largest_with_reserve")
_ADDED = {"schema", "fits", "kinds", "training"}  # what `to_dict` writes in addition to the fields of RunResult


def read_claims(document: Mapping[str, Any]) -> Claims:
    """Read a document. Raises SpecError, which names the first field that is not as it should be."""
    check_members("", document, {each.name for each in fields(RunResult)} | _ADDED)
    if document.get("schema") != SCHEMA or isinstance(document.get("schema"), bool):
        raise SpecError("schema", f"must be {SCHEMA}")
    for name in _POINTS:
        read_optional(Point, document, name, may_lack=name == "largest_with_reserve")
    for name in ("speedup", "speedup_low", "speedup_high", "batch_size_ratio"):
        read_optional(float, document, name, may_lack=name in ("speedup_low", "speedup_high"))
    read_optional(bool, document, "fits")
    read_optional(dict[str, str], document, "kinds")
    read(dict[str, Any], document, "environment")
    read_optional(EstimateError, document, "estimate_error")
    training = read_optional(Training, document, "training")
    return Claims(
        raw=document,
        spec=read_spec(document.get("spec"), is_training=training is not None),
        device=read(DeviceFacts, document, "device", added=("is_shared",)),
        boundary=read(Boundary, document, "boundary"),
        probes=read_many(Probe, document, "probes", MOST_PROBES),
        waste=read(Waste, document, "waste"),
        savings=read(Savings, document, "savings"),
        timings=read_optional(Timings, document, "timings") or Timings(),
        speed=read_optional(Speed, document, "speed"),
        speed_rounds=_read_rounds(document),
        estimate=_read_estimate(document),
        memory_breakdown=read_optional(MemoryBreakdown, document, "memory_breakdown"),
        training=training,
    )


def check_members(path: str, value: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise SpecError for a member that this version does not know: what it claims could not be recomputed."""
    for name in value:
        if name not in known:
            raise SpecError(f"{path}{name}"[:200], "is unknown")


def read(kind: type[T], document: Mapping[str, Any], name: str, *, added: Iterable[str] = ()) -> T:
    """Read a required member. `added` are members that it has in addition to its fields."""
    if name not in document:
        raise SpecError(name, "is missing")
    return _read(kind, document[name], name, added)


def read_optional(kind: type[T], document: Mapping[str, Any], name: str, *, may_lack: bool = True) -> T | None:
    """Read a member that may be null, and may be left out where it is newer than the first results."""
    if name not in document and not may_lack:
        raise SpecError(name, "is missing")
    return None if document.get(name) is None else _read(kind, document[name], name)


def _read(kind: type[T], value: Any, path: str, added: Iterable[str] = ()) -> T:
    try:
        found = from_json(kind, value)
    except (ValueError, OverflowError) as exc:
        raise SpecError(path, str(exc)) from exc
    if hasattr(found, "__dataclass_fields__"):
        _check_known(path, value, asdict(found), added)  # type: ignore[call-overload]
    return found


def read_many(
    kind: type[T], document: Mapping[str, Any], name: str, most: int, added: Iterable[str] = ()
) -> tuple[T, ...]:
    """Read a list of at most `most` members."""
    values = document.get(name)
    if not isinstance(values, (list, tuple)):
        raise SpecError(name, "must be a list")
    if len(values) > most:
        raise SpecError(name, f"has more than {most:,} members")
    return tuple(_read(kind, value, f"{name}[{place}]", added) for place, value in enumerate(values))


def _check_known(path: str, given: Any, known: Any, added: Iterable[str] = ()) -> None:
    """Compare the members given with those of the dataclass that was read from them, at every level."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        check_members(f"{path}.", given, {*known, *added})
        for name in given.keys() & known.keys():
            _check_known(f"{path}.{name}", given[name], known[name])
    elif isinstance(given, (list, tuple)) and isinstance(known, (list, tuple)):
        for place, (one, other) in enumerate(zip(given, known, strict=True)):
            _check_known(f"{path}[{place}]", one, other)


def read_spec(value: Any, *, is_training: bool) -> Spec:
    """Read the spec of a measurement, or of a command or function. Raises SpecError."""
    if not isinstance(value, Mapping):
        raise SpecError("spec", "must be a JSON object")
    spec = read_tuned_spec(value) if is_training else RunSpec.from_dict(dict(value))
    for name in SPEC_OF_A_COMMAND if is_training else SPEC_OF_A_MODEL:
        if value.get(name) is None:
            raise SpecError(f"spec.{name}", "is missing")
    for name in () if isinstance(spec, RunSpec) else spec.DERIVED:
        if name in value and value[name] != getattr(spec, name):
            raise SpecError(f"spec.{name}", f"must be {getattr(spec, name)!r}")
    return spec


def _read_rounds(document: Mapping[str, Any]) -> tuple[SpeedRound, ...]:
    if "speed_rounds" not in document:
        return ()  # an earlier engine did not store them, and a document that claims no speed needs none
    rounds = read_many(SpeedRound, document, "speed_rounds", MOST_ROUNDS)
    blocks = 0
    for place, each in enumerate(rounds):
        sizes = [block.batch_size for block in each.blocks]
        blocks += len(sizes)
        least = 0 if each.left_out is not None else 1
        if not least <= len(set(sizes)) == len(sizes) <= MOST_SIZES:
            raise SpecError(f"speed_rounds[{place}].blocks", "must have one block for each size")
    if blocks > MOST_BLOCKS:
        raise SpecError("speed_rounds", f"have more than {MOST_BLOCKS:,} blocks: a comparison ends before")
    return rounds


def _read_estimate(document: Mapping[str, Any]) -> Estimate | None:
    given = document.get("estimate")
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise SpecError("estimate", "must be a JSON object")
    spec = RunSpec.from_dict(dict(given["spec"])) if isinstance(given.get("spec"), Mapping) else None
    estimate = _read(Estimate, given, "estimate")
    if spec is None:
        raise SpecError("estimate.spec", "must be a JSON object")
    return estimate
