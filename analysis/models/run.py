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

from analysis.models.accounts import ApiToken as ApiToken
from analysis.models.accounts import Quota as Quota
from analysis.models.annotations import NAME_LENGTH, Restorable, Tag
from analysis.models.annotations import RunWord as RunWord
from analysis.models.annotations import SavedView as SavedView
from analysis.models.api import IdempotencyKey as IdempotencyKey
from analysis.models.audit import AuditEntry as AuditEntry
from analysis.models.gpu_price import GpuPrice as GpuPrice
from analysis.models.indexes import HISTORY_INDEXES
from analysis.models.matrix import MatrixCell as MatrixCell
from analysis.models.querysets import DeviceQuerySet, MeasurementQuerySet, RunLogQuerySet, RunManager, RunQuerySet
from analysis.models.retention import RetentionRule as RetentionRule
from analysis.models.trend import TREND_INDEX
from analysis.models.trend import TrendAcknowledgement as TrendAcknowledgement
from engine.result import Probe
from engine.spec import RunSpec


class MaintenanceMixin(models.Model):
    """What keeps a host or a device from taking new runs for a while. A run under way is left to end."""

    drained = models.BooleanField(default=False, help_text="Takes no new run; what runs now is left to end.")
    maintenance_from = models.DateTimeField(null=True, blank=True)
    maintenance_until = models.DateTimeField(null=True, blank=True, help_text="Empty: until further notice.")
    maintenance_note = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        abstract = True


class Host(MaintenanceMixin):
    """A machine with devices. Registered by its workers, under the name they run with."""

    name = models.CharField(max_length=200, unique=True)
    registered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Device(MaintenanceMixin):
    """One place to run on: a card, a MIG instance of one, or the CPU, of one host. Registered by its worker.

    A card is known by its UUID and keeps its row when it moves; what has none is known by host and name.
    """

    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="devices")
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
    allowed_users = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="+", help_text="Empty, with no group either: everybody."
    )
    allowed_groups = models.ManyToManyField("auth.Group", blank=True, related_name="+")
    last_seen_at = models.DateTimeField(null=True, blank=True, help_text="When its worker last gave a sign of life.")
    memory_used_bytes = models.BigIntegerField(null=True, blank=True)
    memory_read_at = models.DateTimeField(null=True, blank=True)
    foreign_used_bytes = models.BigIntegerField(
        null=True, blank=True, help_text="What other processes held when a worker last wanted to start a run."
    )
    calibration = models.JSONField(null=True, blank=True, help_text="Its own constants: `manage.py calibrate`.")
    calibrated_at = models.DateTimeField(null=True, blank=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ("host__name", "device")
        constraints = (
            models.UniqueConstraint(fields=("uuid",), condition=~Q(uuid=""), name="device_once_per_uuid"),
            models.UniqueConstraint(fields=("host", "device"), condition=Q(uuid=""), name="device_once_per_host"),
        )

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


TERMINAL_STATES = frozenset({State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED})


ALL_GPUS = "all"
"""The `gpu` of an estimate for every card of the catalogue."""


class Run(Restorable):
    """One stored analysis: a spec, its state, its probes, its result.

        queued ──claim──> running ──the engine gave a result────────────> finished
        │  ^                 ├─────the engine said no, timed out─────────> failed
        │  └──worth another──┤  attempt (see `analysis.runs.retry_policy`), else:
        │                    ├─────the engine died, stood still─────────> failed
        │                    ├─────its worker or host died, 3 times─────> interrupted
        │                    └─────cancel_requested was seen────────────> cancelled
        └──cancel──> cancelled

    A claim raises `attempt` and draws a fresh `token`; whoever writes to a running run must show that
    token, so a worker that lost its run cannot touch it any more. A model that does not fit at batch 1,
    or a spent time budget, is a result: finished, with `exit_status` 3 or 5. One device runs one run.

    `asks_*` is where it wants to run: a device; or any of a kind, of a class ("A100") if one is named.
    `device` is where it runs or ran last.

    An estimate goes the same way, but asks for no device and has none: any default worker takes it. Its figures
    stand in the `estimated_*` columns, and those that were measured stay empty, so that no list can mix the two.
    """

    class Kind(models.TextChoices):
        """Whether its figures come from the device itself or from the predictor."""

        MEASUREMENT = "measurement", "Measurement"
        ESTIMATE = "estimate", "Estimate"

    class Priority(models.IntegerChoices):
        """The higher goes first."""

        LOW = -1, "Low"
        NORMAL = 0, "Normal"
        HIGH = 1, "High"

    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.MEASUREMENT)
    gpu = models.CharField(max_length=40, blank=True, default="", help_text="A card of the catalogue, or all of them.")
    model = models.CharField(max_length=40)
    device = models.ForeignKey(
        Device, null=True, blank=True, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    asks_device = models.ForeignKey(
        Device, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_asking_for_it"
    )
    asks_kind = models.CharField(max_length=10, blank=True, default="")
    asks_device_class = models.CharField(max_length=100, blank=True, default="", help_text="Part of the card's name.")
    uses_device_price = models.BooleanField(
        default=True, help_text="Whether the device's own price stands in for the spec's."
    )
    needs_bytes = models.BigIntegerField(null=True, blank=True, help_text="The memory limit it asks to be held to.")
    needs_compute_capability = models.FloatField(null=True, blank=True)
    accepts_shared_device = models.BooleanField(default=False)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs", db_index=False
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
    suspect_at = models.DateTimeField(null=True, blank=True, help_text="When its heartbeat was first found missing.")
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

    # of an estimate; and of the one that was made before a measurement, with how far it was off: 0.01 is 1 % over
    estimated_largest_batch_size = models.PositiveIntegerField(null=True, blank=True)
    estimated_safe_batch_size = models.PositiveIntegerField(null=True, blank=True)
    estimate_is_calibrated = models.BooleanField(null=True, blank=True)
    estimate_peak_error = models.FloatField(null=True, blank=True)
    estimate_boundary_error = models.FloatField(null=True, blank=True)

    limit_bytes = models.BigIntegerField(null=True, blank=True, help_text="What it was allowed of the device.")
    memory_curve = models.JSONField(null=True, blank=True, help_text="Batch sizes and bytes, few: for lists.")
    cost_per_million_samples_usd = models.FloatField(null=True, blank=True)

    # what people write on it
    name = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    note = models.TextField(blank=True, default="")
    tags = models.ManyToManyField(Tag, blank=True, related_name="runs")
    is_baseline = models.BooleanField(default=False, help_text="Pinned: others are compared with it; it is kept.")
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="Out of every list; can be restored.")

    objects = RunManager()
    all_runs = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        permissions = (("manage_portal", "May change what is everybody's, and other people's runs"),)
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="run_newest_first"),
            # a person's oldest waiting run, without walking past every run that is over
            models.Index(
                fields=("requested_by", "priority", "created_at", "id"),
                condition=Q(state=State.QUEUED),
                name="run_waiting",
            ),
            models.Index(fields=("requested_by", "-started_at"), name="run_by_person"),
            models.Index(fields=("-finished_at",), condition=Q(finished_at__isnull=False), name="run_latest_ended"),
            models.Index(fields=("state", "-created_at"), name="run_by_state"),
            models.Index(fields=("model", "-created_at"), name="run_by_model"),
            *HISTORY_INDEXES,
            TREND_INDEX,
            models.Index(
                fields=("-finished_at",), condition=Q(estimate_peak_error__isnull=False), name="run_grading_estimate"
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("device",), condition=Q(state=State.RUNNING), name="one_running_run_per_device"
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RUNNING) | (~Q(token="") & Q(heartbeat_at__isnull=False)),
                name="running_run_has_token_and_heartbeat",
            ),
            models.CheckConstraint(
                condition=~Q(kind="estimate") | Q(device=None, asks_device=None, largest_batch_size=None),
                name="estimate_has_no_device_and_nothing_measured",
            ),
        )

    def __str__(self) -> str:
        return f"run {self.pk}: {self.model}, {self.get_state_display().lower()}"

    def get_absolute_url(self) -> str:
        return reverse("analysis:run", args=[self.pk])

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL_STATES

    @property
    def is_estimate(self) -> bool:
        return self.kind == Run.Kind.ESTIMATE

    @property
    def run_spec(self) -> RunSpec:
        """The spec as the engine's type, validated again on the way out of the database."""
        return RunSpec.from_dict(self.spec)


class Attempt(models.Model):
    """One execution of a run by one worker. `environment` is what a later attempt compares before it resumes.

    An estimate's has no device.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    device = models.ForeignKey(Device, null=True, blank=True, on_delete=models.PROTECT, related_name="attempts")
    owner = models.CharField(max_length=250)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=12, choices=State.choices, blank=True, default="")
    cause = models.CharField(max_length=40, blank=True, default="", help_text="Why it did not give a result.")
    counted = models.BooleanField(default=True, help_text="Whether it counts against the run's attempts.")
    message = models.TextField(blank=True, default="")
    exit_status = models.IntegerField(null=True, blank=True)
    environment = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ("run", "number")
        indexes = (
            models.Index(fields=("-started_at",), name="attempt_latest_started"),
            models.Index(fields=("device", "-ended_at"), name="attempt_latest_ended"),
        )
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number"),)

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id}"


class Measurement(models.Model):
    """One probe of one attempt: every field of `engine.result.Probe` is a column here."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="measurements")
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    recorded_at = models.DateTimeField(auto_now_add=True)
    is_carried = models.BooleanField(default=False, help_text="Measured in an earlier attempt, and carried over.")

    batch_size = models.PositiveIntegerField()
    # the engine's words, and no choices: a new one there is no change of the table here
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
