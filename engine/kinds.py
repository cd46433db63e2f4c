"""The kinds of a run. What the engine knows of one stands in its row here; a new kind is a new row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .documents.kind import ByKind, kind_of
from .recompute.contradiction import Contradiction
from .recompute.document import check_limits
from .recompute.result import contradictions_of_result
from .recompute.validation import contradictions_of_validation
from .spec import RunSpec
from .tune.spec import FunctionSpec, TuneSpec, read_tuned_spec
from .validation.spec import ValidationSpec

Spec = RunSpec | TuneSpec | FunctionSpec | ValidationSpec
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run.

    `subcommand` is that of the engine's command line, empty where it has none. `read_spec` reads what was requested
    and raises SpecError, naming the field. `contradictions` lists what a document claims beyond its probes.
    """

    subcommand: str
    read_spec: Callable[[dict[str, Any]], Spec]
    contradictions: Callable[[Document], list[Contradiction]]
    searches: bool = False
    """Whether it searches the largest batch size on a device, so that its figures count as measured."""
    uses_device: bool = True
    """Whether it waits for a device and holds it."""
    is_reported: bool = True
    """Whether another machine may report such a run."""


KINDS = ByKind(
    measurement=Kind("", RunSpec.from_dict, contradictions_of_result, searches=True),
    command=Kind("tune", read_tuned_spec, contradictions_of_result, searches=True),
    estimate=Kind("estimate", RunSpec.from_dict, contradictions_of_result, uses_device=False, is_reported=False),
    validation=Kind("validate", ValidationSpec.from_dict, contradictions_of_validation),
)
"""An estimate claims nothing that was measured: as a result it is refused by its first member."""


def find_contradictions(document: Document) -> list[Contradiction]:
    """List the fields in which a result claims more than its probes show. Raises SpecError for a malformed document.

    `document` is the JSON of a measurement, of a tuned command, or of a validation.
    """
    check_limits(document)
    return KINDS[kind_of(document)].contradictions(document)
