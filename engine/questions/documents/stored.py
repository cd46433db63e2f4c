"""Reads a stored document: the spec, which today's rules might refuse, and the optional parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from ...errors import SpecError
from ...facts.result import DeviceFacts, Probe
from ...settings.catalog.stored_workload import is_own_training
from ...settings.spec import DEFAULTS, SCHEMA
from ...text.from_json import from_json

T = TypeVar("T")
Parts = Mapping[str, Callable[[Any], object]]
"""The parts of a document that the rest does not need, with their readers."""
MALFORMED = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, StopIteration)
"""What reading a document of any content may raise: it is of the document, and no error of the reader."""
_MISSING = re.compile(r"Object missing required field `(\w+)`")


class StoredSpec(dict[str, Any]):
    """A stored spec, its members as attributes. A setting that is newer than the document has its default."""

    model: str
    device: str
    current_batch_size: int
    memory_limit_bytes: int | None
    max_batch_size: int
    check_batch_size: int | None
    reserve_fraction: float
    reserve_bytes: int | None
    price_per_hour_usd: float
    hours_per_run: float
    runs_per_year: int

    @property
    def starts_anew(self) -> bool:
        """Whether each probe was a start of a training of somebody's own."""
        return is_own_training(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name] if name in self else DEFAULTS[name]
        except KeyError:
            raise AttributeError(name) from None

    def to_dict(self) -> dict[str, Any]:
        return dict(self)


def from_document(kind: type[T], document: Any) -> T:
    """Make a `kind` with a StoredSpec of a document. Raises ValueError, which names the member."""
    return from_json(kind, document, _read_spec)


def read_strictly(kind: type[T], document: Any, path: str = "") -> T:
    """Make a `kind` of a document, or of its part at `path`. Raises SpecError, which names the wrong member."""
    try:
        return from_document(kind, document)
    except (ValueError, OverflowError) as exc:
        said, _, place = str(exc).partition(" - at `$")
        missing = _MISSING.fullmatch(said)
        member = f"{path}{place.rstrip('`')}" + (f".{missing[1]}" if missing else "")
        raise SpecError(member.lstrip(".") or "result", "is missing" if missing else said) from exc


def check_schema(document: Mapping[str, Any]) -> None:
    """Raise SpecError for a document of another schema than today's."""
    if (given := document.get("schema")) != SCHEMA or isinstance(given, bool):
        raise SpecError("schema", f"must be {SCHEMA}")


def read_parts(document: Mapping[str, Any], parts: Parts) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the parts of a document, and name those that cannot be read; one that is not there is no such part."""
    made, unreadable = dict[str, Any](), []
    for name, read in parts.items():
        part = document.get(name)
        try:
            made[name] = None if part is None else read(part)
        except ValueError:
            made[name] = None
            unreadable.append(name)
    return made, tuple(unreadable)


def _read_spec(kind: type, value: Any) -> StoredSpec:
    if kind is not StoredSpec or not isinstance(value, dict):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    return StoredSpec(value)


class ReadBack:
    """A document that is read as it stands."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        made = from_document(cls, document)
        made.check()
        return made

    def check(self) -> None:
        """Raise ValueError for what none of its kind holds, and pages would stumble over."""


class WithoutSizes(ReadBack):
    """What is common to documents of runs without a search of batch sizes."""

    __slots__ = ()
    device: DeviceFacts
    environment: dict[str, Any]

    probes: ClassVar[tuple[Probe, ...]] = ()
    what_to_change: ClassVar[None] = None

    def recorded_facts(self) -> dict[str, Any]:
        return {"device_name": self.device.name, "capacity_bytes": self.device.capacity_bytes, **self.environment}


def with_earlier_note(result: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the note of a result whose build told of its starts in sentences alone."""
    if "boundary" in result and "is_of_earlier_run" not in earlier["boundary"]:
        result["boundary"]["note"] = earlier["boundary"]["note"]
    return result
