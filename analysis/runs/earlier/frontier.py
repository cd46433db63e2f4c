"""Measured runs of an estimate's training at one of its lengths, on the card that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from analysis.models import Run
from analysis.runs.earlier.reuse import stored_spec
from analysis.runs.earlier.what_to_change import Measured, most_measured, newest_measured
from engine.errors import SpecError
from engine.estimate.frontier import specs_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def measured_sizes(run: Run, user: User | None) -> Mapping[int, Measured]:
    """Find the measurement at each length or image size, on one kind of device (same name and memory).

    Where several kinds measured sizes, choose the kind that measured most. Return nothing where none did.
    """
    spec = stored_spec(run)
    sizes = run.spec.get("frontier")
    if spec is None or not sizes:
        return {}
    try:
        specs = specs_of(spec, sizes)
    except SpecError:  # a later version no longer allows a size
        return {}
    return most_measured(
        run,
        user,
        lambda same: {each.input_size: found for each in specs if (found := newest_measured(each, same)) is not None},
    )
