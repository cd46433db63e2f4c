"""The kinds of a run, and which one a result document is of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ..catalog.stored_workload import is_own_training


class KindName(StrEnum):
    """What a run is. A command may also be a function: both are a training of the user's own."""

    MEASUREMENT = "measurement"
    COMMAND = "command"
    VALIDATION = "validation"
    ESTIMATE = "estimate"


MEMBERS = {
    "estimates": KindName.ESTIMATE,
    "safe_batch_size": KindName.ESTIMATE,
    "checks": KindName.VALIDATION,
}
"""The members that the documents of one kind alone have."""


def kind_of(document: Mapping[str, Any]) -> KindName:
    """Tell the kind by the document's members. What has those of no other kind counts as a measurement."""
    for member, kind in MEMBERS.items():
        if member in document:
            return kind
    spec = document.get("spec")
    is_own = isinstance(spec, Mapping) and is_own_training(spec)
    return KindName.COMMAND if is_own else KindName.MEASUREMENT
