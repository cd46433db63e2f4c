"""Any result document -> its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .estimated import Estimated
from .kind import RunKind, kind_of
from .measured import Measured
from .validated import Validated

Document = Measured | Estimated | Validated

READERS: Mapping[RunKind, Callable[[Mapping[str, Any]], Document]] = {
    RunKind.MEASUREMENT: Measured.from_dict,
    RunKind.COMMAND: Measured.from_dict,
    RunKind.ESTIMATE: Estimated.from_dict,
    RunKind.VALIDATION: Validated.from_dict,
}


def read_result(document: Mapping[str, Any]) -> Document:
    """Read the document of a result, of any kind and version. Raises ValueError, which names the member."""
    return READERS[kind_of(document)](document)
