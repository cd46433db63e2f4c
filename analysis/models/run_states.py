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
    """Whether a run's figures are measured on a device or estimated by the predictor."""

    MEASUREMENT = "measurement", "Measurement"
    ESTIMATE = "estimate", "Estimate"


TERMINAL_STATES = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})
