"""The states and kinds of a run."""

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

    A validation runs on a device as a measurement does, but finds no batch size: nothing counts it as one.
    """

    MEASUREMENT = "measurement", "Measurement"
    ESTIMATE = "estimate", "Estimate"
    VALIDATION = "validation", "Validation"


ON_DEVICES = (RunKind.MEASUREMENT, RunKind.VALIDATION)
"""The kinds that wait for a device and hold it."""


TERMINAL_STATES = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})
