"""The kinds of a run, and which one a result document is of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ..catalog.stored_workload import is_own_training


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


MEMBERS = {
    "estimates": RunKind.ESTIMATE,
    "safe_batch_size": RunKind.ESTIMATE,
    "checks": RunKind.VALIDATION,
}
"""The members that the documents of one kind alone have."""


def kind_of(document: Mapping[str, Any]) -> RunKind:
    """Tell the kind by the document's members. What has those of no other kind counts as a measurement."""
    for member, kind in MEMBERS.items():
        if member in document:
            return kind
    spec = document.get("spec")
    is_own = isinstance(spec, Mapping) and is_own_training(spec)
    return RunKind.COMMAND if is_own else RunKind.MEASUREMENT
