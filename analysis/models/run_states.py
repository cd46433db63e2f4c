"""The states, kinds and origins of a run."""

from __future__ import annotations

from django.db import models


class State(models.TextChoices):
    """The state of a run. `Run` has a drawing of the transitions."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    INTERRUPTED = "interrupted", "Interrupted"


class RunKind(models.TextChoices):
    """What a run is for: figures of a device, figures of the predictor, or a check that what is measured is right.

    A command measures a training command or a function of somebody's own, and no model of the catalogue. A validation
    runs on a device as a measurement does, but finds no batch size: nothing counts it as one.
    """

    MEASUREMENT = "measurement", "Measurement"
    COMMAND = "command", "Command"
    ESTIMATE = "estimate", "Estimate"
    VALIDATION = "validation", "Validation"


class RunOrigin(models.TextChoices):
    """Where a run is executed: by a worker of this portal, or by a sender on another machine."""

    HERE = "here", "Here"
    REPORTED = "reported", "Reported"


SEARCHES = (RunKind.MEASUREMENT, RunKind.COMMAND)
"""The kinds that search the largest batch size on a device: their figures count as measured."""
ON_DEVICES = tuple(kind for kind in RunKind if kind != RunKind.ESTIMATE)
"""The kinds that wait for a device and hold it."""

PUBLISHED_KINDS = [(kind.value, kind.label) for kind in RunKind if kind != RunKind.COMMAND]
"""The kinds that lists and version 1 of the API name.

A command is a measurement there: it was one before it had a kind, and saved views, scripts and exports say so.
"""


def published_kind(kind: str) -> str:
    """Return the kind under which a run is published."""
    return RunKind.MEASUREMENT.value if kind == RunKind.COMMAND else kind


class PublishedKind(models.Transform):
    """`kind__published`: the same in the database, to filter and to sort. The literals are those of the index."""

    lookup_name = "published"
    template = f"replace(%(expressions)s, '{RunKind.COMMAND}', '{RunKind.MEASUREMENT}')"


TERMINAL_STATES = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})
