"""What an attempt of a run stores: a row for each probe, and its log."""

from __future__ import annotations

from dataclasses import fields

from django.db import models

from analysis.models.querysets import MeasurementQuerySet, RunLogQuerySet
from analysis.models.run import Run
from engine.facts.result import Probe


class Measurement(models.Model):
    """One probe of one attempt: every field of `engine.facts.result.Probe` is a column here."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="measurements")
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    recorded_at = models.DateTimeField(auto_now_add=True)
    is_carried = models.BooleanField(
        default=False, help_text="Whether the probe was carried over from an earlier attempt."
    )

    batch_size = models.PositiveIntegerField()
    # the engine's values, without `choices`: a new value there needs no migration here
    outcome = models.CharField(max_length=20)
    purpose = models.CharField(max_length=20)
    fresh_process = models.BooleanField(default=False)
    steps = models.PositiveIntegerField(default=0)
    peak_allocated_bytes = models.BigIntegerField(null=True)
    peak_reserved_bytes = models.BigIntegerField(null=True)
    device_used_bytes = models.BigIntegerField(null=True)
    beside_bytes = models.BigIntegerField(null=True)
    allocator_retries = models.PositiveIntegerField(null=True)
    peak_phase = models.CharField(max_length=40, blank=True, default="")
    memory_by_kind = models.JSONField(null=True)
    step_seconds = models.FloatField(null=True)
    timed_step_seconds = models.JSONField(default=list)
    timing_is_steady = models.BooleanField(null=True)
    timing_conditions = models.JSONField(null=True)
    samples_per_second = models.FloatField(null=True)
    error_type = models.CharField(max_length=200, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    failed_phase = models.CharField(max_length=40, blank=True, default="")
    wall_seconds = models.FloatField(default=0.0)

    objects = MeasurementQuerySet.as_manager()

    class Meta:
        ordering = ("run", "attempt", "sequence")
        constraints = (
            models.UniqueConstraint(fields=("run", "attempt", "sequence"), name="measurement_once_per_sequence"),
        )

    def __str__(self) -> str:
        return f"batch {self.batch_size}: {self.outcome}"

    @property
    def probe(self) -> Probe:
        """The stored row as the engine's type; empty text becomes None."""
        stored = {f.name: getattr(self, f.name) for f in fields(Probe)}
        return Probe.from_dict({name: None if value == "" else value for name, value in stored.items()})


class RunLog(models.Model):
    """One log line of the engine or its supervisor during an attempt. Bounded: see `services.log_add`."""

    class Level(models.TextChoices):
        INFO = "info", "Info"
        WARNING = "warning", "Warning"
        ERROR = "error", "Error"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log_lines")
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    recorded_at = models.DateTimeField(auto_now_add=True)
    level = models.CharField(max_length=10, choices=Level.choices, default=Level.INFO)
    message = models.CharField(max_length=2000)

    objects = RunLogQuerySet.as_manager()

    class Meta:
        ordering = ("run", "attempt", "sequence")
        constraints = (
            models.UniqueConstraint(fields=("run", "attempt", "sequence"), name="log_line_once_per_sequence"),
        )

    def __str__(self) -> str:
        return self.message
