"""Any result document -> its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .estimated import Estimated
from .kind import KindName, kind_of
from .measured import Measured
from .validated import Validated

Document = Measured | Estimated | Validated

READERS: Mapping[KindName, Callable[[Mapping[str, Any]], Document]] = {
    KindName.MEASUREMENT: Measured.from_dict,
    KindName.COMMAND: Measured.from_dict,
    KindName.VALIDATION: Validated.from_dict,
    KindName.ESTIMATE: Estimated.from_dict,
}


def read_result(document: Mapping[str, Any]) -> Document:
    """Read the document of a result, of any kind and version. Raises ValueError, which names the member."""
    return READERS[kind_of(document)](document)
