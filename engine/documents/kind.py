"""The kinds of a run, and the document of each: its members, and the type that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from ..catalog.stored_workload import is_own_training
from .estimated import Estimated
from .measured import Measured
from .validated import Validated

T = TypeVar("T")
Document = Measured | Estimated | Validated


class RunKind(StrEnum):
    """What a run is for: figures of a device, figures of the predictor, or a check that what is measured is right.

    A command measures a training command or a function of somebody's own, and no model of the catalogue. A validation
    runs on a device as a measurement does, but finds no batch size: nothing counts it as one.
    """

    MEASUREMENT = "measurement"
    COMMAND = "command"
    ESTIMATE = "estimate"
    VALIDATION = "validation"

    @property
    def label(self) -> str:
        """How pages name it."""
        return self.capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class ByKind(Mapping[RunKind, T]):
    """A table with a row for each kind of run: type checkers find one that is missing, and so does the import."""

    measurement: T
    command: T
    estimate: T
    validation: T

    def __getitem__(self, kind: str) -> T:
        row: T = getattr(self, RunKind(kind))
        return row

    def __iter__(self) -> Iterator[RunKind]:
        return iter(RunKind)

    def __len__(self) -> int:
        return len(RunKind)


@dataclass(frozen=True, slots=True)
class DocumentOf:
    """The document of a kind: its reader, and the members that no document of another kind has."""

    read: Callable[[Mapping[str, Any]], Document]
    members: tuple[str, ...] = ()


DOCUMENTS = ByKind(
    measurement=DocumentOf(Measured.from_dict),
    command=DocumentOf(Measured.from_dict),
    estimate=DocumentOf(Estimated.from_dict, members=("estimates", "safe_batch_size")),
    validation=DocumentOf(Validated.from_dict, members=("checks",)),
)


def kind_of(document: Mapping[str, Any]) -> RunKind:
    """Tell the kind by the document's members. What has those of no other kind counts as a measurement."""
    for kind, each in DOCUMENTS.items():
        if not document.keys().isdisjoint(each.members):
            return kind
    spec = document.get("spec")
    is_own = isinstance(spec, Mapping) and is_own_training(spec)
    return RunKind.COMMAND if is_own else RunKind.MEASUREMENT


def read_result(document: Mapping[str, Any]) -> Document:
    """Read the document of a result, of any kind and version. Raises ValueError, which names the member."""
    return DOCUMENTS[kind_of(document)].read(document)
