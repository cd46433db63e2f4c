"""Rows: the devices of all hosts, the runs, what each run measured and what it said.

`services.py` writes them (it alone changes `Run.state`), `querysets.py` holds the words to read them.
"""

from __future__ import annotations

from dataclasses import fields

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse

from analysis.querysets import DeviceQuerySet, MeasurementQuerySet, RunLogQuerySet, RunQuerySet
from engine.result import Probe
from engine.spec import RunSpec


class Device(models.Model):
    """One place to run on: a card, or the CPU, of one host. Registered by that host's `manage.py up`."""

    host = models.CharField(max_length=200)
    device = models.CharField(max_length=20, help_text="As the engine names it: cuda:0, xpu:0, mps:0, cpu.")
    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=200)
    uuid = models.CharField(max_length=100, blank=True, default="")
    capacity_bytes = models.BigIntegerField()
    driver = models.CharField(max_length=100, blank=True, default="")
    compute_capability = models.CharField(max_length=20, blank=True, default="")
    price_per_hour_usd = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0)], help_text="Assumed in the savings of new runs."
    )
    enabled = models.BooleanField(default=True, help_text="Only enabled devices take new runs.")
    last_seen_at = models.DateTimeField(null=True, blank=True)
    memory_used_bytes = models.BigIntegerField(null=True, blank=True)
    memory_read_at = models.DateTimeField(null=True, blank=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ("host", "device")
        constraints = (models.UniqueConstraint(fields=("host", "device"), name="device_once_per_host"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.host} {self.device})"

    @property
    def queue_name(self) -> str:
        """The django-q2 queue that wakes this device's worker: a shared one would leave cards idle."""
        return f"device-{self.pk}"


class State(models.TextChoices):
    """Where a run stands. Transitions are drawn in `Run`."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    INTERRUPTED = "interrupted", "Interrupted"


OVER = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})


class Run(models.Model):
    """One stored analysis: a spec, its state, its probes, its result.

        queued ──claim──> running ──the engine gave a result────────────> finished
          │                  ├─────the engine said no, died, timed out──> failed
          │                  ├─────cancel_requested was seen────────────> cancelled
          │                  └─────its worker stopped or vanished───────> interrupted
          └──cancel──> cancelled

    A claim raises `attempt` and draws a fresh `token`; whoever writes to a running run must show that
    token, so a worker that lost its run cannot touch it any more. A model that does not fit at batch 1,
    or a spent time budget, is a result: finished, with `exit_status` 3 or 5. One device runs one run.
    """

    model = models.CharField(max_length=40)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="runs")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    spec = models.JSONField()
    precision = models.CharField(max_length=10)
    optimizer = models.CharField(max_length=20)

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    phase = models.CharField(max_length=20, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    attempt = models.PositiveIntegerField(default=0)
    token = models.CharField(max_length=32, blank=True, default="")
    owner = models.CharField(max_length=250, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)

    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    exit_status = models.IntegerField(null=True, blank=True, help_text="Of the engine; negative: the signal.")
    result = models.JSONField(null=True, blank=True)

    # copied out of the result, to filter and sort lists without opening it
    device_name = models.CharField(max_length=200, blank=True, default="")
    capacity_bytes = models.BigIntegerField(null=True, blank=True)
    largest_batch_size = models.PositiveIntegerField(null=True, blank=True)
    certified = models.BooleanField(null=True, blank=True)
    boundary_reason = models.CharField(max_length=20, blank=True, default="")
    recommended_batch_size = models.PositiveIntegerField(null=True, blank=True)
    recommended_samples_per_second = models.FloatField(null=True, blank=True)
    recommended_memory_bytes = models.BigIntegerField(null=True, blank=True)
    current_batch_size = models.PositiveIntegerField(null=True, blank=True)
    current_waste_bytes = models.BigIntegerField(null=True, blank=True)
    speedup = models.FloatField(null=True, blank=True)
    saving_per_run_usd = models.FloatField(null=True, blank=True)
    saving_per_year_usd = models.FloatField(null=True, blank=True)
    is_shared = models.BooleanField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="run_newest_first"),
            models.Index(fields=("device", "state", "created_at"), name="run_waiting_for_device"),
            models.Index(fields=("state", "-created_at"), name="run_by_state"),
            models.Index(fields=("model", "-created_at"), name="run_by_model"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("device",), condition=Q(state=State.RUNNING), name="one_running_run_per_device"
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RUNNING) | (~Q(token="") & Q(heartbeat_at__isnull=False)),
                name="running_run_has_token_and_heartbeat",
            ),
        )

    def __str__(self) -> str:
        return f"run {self.pk}: {self.model}, {self.get_state_display().lower()}"

    def get_absolute_url(self) -> str:
        return reverse("analysis:run", args=[self.pk])

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def run_spec(self) -> RunSpec:
        """The spec as the engine's type, validated again on the way out of the database."""
        return RunSpec.from_dict(self.spec)


class Measurement(models.Model):
    """One probe of one attempt: every field of `engine.result.Probe` is a column here."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="measurements")
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    recorded_at = models.DateTimeField(auto_now_add=True)

    batch_size = models.PositiveIntegerField()
    # the engine's words, and no choices: a new one there is no change of the table here
    outcome = models.CharField(max_length=20)
    purpose = models.CharField(max_length=20)
    fresh_process = models.BooleanField(default=False)
    steps = models.PositiveIntegerField(default=0)
    peak_allocated_bytes = models.BigIntegerField(null=True)
    peak_reserved_bytes = models.BigIntegerField(null=True)
    device_used_bytes = models.BigIntegerField(null=True)
    allocator_retries = models.PositiveIntegerField(null=True)
    peak_phase = models.CharField(max_length=40, blank=True, default="")
    memory_by_kind = models.JSONField(null=True)
    step_seconds = models.FloatField(null=True)
    timed_step_seconds = models.JSONField(default=list)
    timing_is_steady = models.BooleanField(null=True)
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
        """The stored row as the engine's type; empty text is what the engine calls None."""
        stored = {f.name: getattr(self, f.name) for f in fields(Probe)}
        return Probe.from_dict({name: None if value == "" else value for name, value in stored.items()})


class RunLog(models.Model):
    """One line the engine or its supervisor said during an attempt. Bounded: see `services.log_add`."""

    class Level(models.TextChoices):
        """How much a line matters."""

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
