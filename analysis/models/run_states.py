"""The states of a run, and what the database tells of its kind."""

from __future__ import annotations

from django.db import models

from engine.questions.kinds import RunKind, asked


class State(models.TextChoices):
    """The state of a run. `Run` has a drawing of the transitions."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    INTERRUPTED = "interrupted", "Interrupted"


SEARCHES = tuple(kind for kind in RunKind if asked(kind).searches)
"""The kinds that search the largest batch size on a device: their figures count as measured."""
TELL_UNUSED = tuple(kind for kind in RunKind if asked(kind).tells_unused)
"""The kinds that measure what a training leaves of its device's memory."""
ON_DEVICES = tuple(kind for kind in RunKind if asked(kind).uses_device)
"""The kinds that wait for a device and hold it."""

KIND_CHOICES = [(kind.value, kind.label) for kind in RunKind]
PUBLISHED_KINDS = [choice for choice in KIND_CHOICES if choice[0] != RunKind.COMMAND]
"""The kinds that lists and version 1 of the API name.

A command is a measurement there: it was one before it had a kind, and saved views, scripts and exports say so.
"""


def published_kind(kind: str) -> str:
    return RunKind.MEASUREMENT.value if kind == RunKind.COMMAND else kind


class PublishedKind(models.Transform):
    """`kind__published`: the published kind in the database, to filter and sort by; its literals are the index's."""

    lookup_name = "published"
    template = f"replace(%(expressions)s, '{RunKind.COMMAND}', '{RunKind.MEASUREMENT}')"


TERMINAL_STATES = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})
