"""A run and its attempts. Only `analysis.runs.services` writes them and changes `Run.state`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from analysis.models.annotations import NAME_LENGTH, Tag
from analysis.models.device import Device
from analysis.models.indexes import HISTORY_INDEXES, TREND_INDEX
from analysis.models.querysets import RunManager, RunQuerySet
from analysis.models.run_states import (
    KIND_CHOICES,
    TERMINAL_STATES,
    PublishedKind,
    State,
    published_kind,
)
from engine.estimate.spec import read_training
from engine.questions.kinds import KINDS, RunKind, asked
from engine.settings.spec import RunSpec


class Run(models.Model):
    """One stored analysis: a spec, its state, its probes, its result.

        queued ──claim──> running ──the engine gave a result────────────> finished
        │  ^                 ├─────the engine failed or timed out────────> failed
        │  └──next attempt───┤  (see `analysis.runs.queue.retry_policy`), else:
        │                    ├─────the engine died or made no progress──> failed
        │                    ├─────its worker or host died, 3 times─────> interrupted
        │                    └─────cancel_requested─────────────────────> cancelled
        └──cancel──> cancelled

    A claim increments `attempt` and creates a new `token`. Every write to a running run must have that
    token, so a worker that lost its run can no longer change it. A model that does not fit at batch 1,
    or a spent time budget, is a result: finished, with `exit_status` 3 or 5. One device runs one run.

    `requested_*` is the requested placement: a device; or any of a kind, optionally of a class ("A100").
    `device` is the device that executes it, or executed it last. A run of several devices holds them all or none:
    `device` is then the one whose worker runs the engine, and each of them names the run in `Device.held_for`.

    An estimate has the same states, but no device: any worker of the default queue takes it. Its figures are in the
    `estimated_*` columns, and the columns of measured figures stay empty, so that no list can mix the two.

    A validation waits for a device and holds it like a measurement. It has a `verdict`, and no batch size.

    A reported run is one that a sender on another machine executes. It begins as running and is never queued, so no
    worker can claim it: silence, or a stop where it ran, ends it as interrupted. It differs from the drawing: what
    comes later makes an interrupted one running again, and its result finishes it whatever it ended as.
    """

    Kind = RunKind

    class Priority(models.IntegerChoices):
        LOW = -1, "Low"
        NORMAL = 0, "Normal"
        HIGH = 1, "High"

    kind = models.CharField(max_length=12, choices=KIND_CHOICES, default=RunKind.MEASUREMENT.value)
    gpu = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="What was estimated, here or before measuring: a card of the catalogue, all, or cpu.",
    )
    model = models.CharField(max_length=40)
    device = models.ForeignKey(
        Device, null=True, blank=True, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    requested_device = models.ForeignKey(
        Device, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_requesting"
    )
    requested_kind = models.CharField(max_length=10, blank=True, default="")
    requested_device_class = models.CharField(
        max_length=100, blank=True, default="", help_text="Requested card: part of its name."
    )
    uses_device_price = models.BooleanField(
        default=True, help_text="Whether the device's price replaces the price of the spec."
    )
    device_count = models.PositiveSmallIntegerField(default=1, help_text="Devices of one host that it needs together.")
    needs_bytes = models.BigIntegerField(null=True, blank=True, help_text="Requested memory limit.")
    needs_compute_capability = models.FloatField(null=True, blank=True)
    accepts_shared_device = models.BooleanField(default=False)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs", db_index=False
    )
    spec = models.JSONField()
    precision = models.CharField(max_length=10)
    optimizer = models.CharField(max_length=20)

    takes_over = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The run whose probes this run starts with.",
    )

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
    suspect_at = models.DateTimeField(null=True, blank=True, help_text="When the heartbeat was first found missing.")
    cancel_requested = models.BooleanField(default=False)

    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    exit_status = models.IntegerField(
        null=True, blank=True, help_text="Exit status of the engine; negative: the signal that ended it."
    )
    result = models.JSONField(null=True, blank=True)
    printed_headline = models.TextField(
        blank=True, default="", editable=False, help_text="What its page said when the result was stored."
    )
    decided_by = models.CharField(
        max_length=40, blank=True, default="", editable=False, help_text="The version whose rules said it."
    )

    # copied from the result, to filter and sort lists without reading it
    device_name = models.CharField(max_length=200, blank=True, default="")
    capacity_bytes = models.BigIntegerField(null=True, blank=True)
    largest_batch_size = models.PositiveIntegerField(null=True, blank=True)
    certified = models.BooleanField(null=True, blank=True)
    boundary_reason = models.CharField(max_length=20, blank=True, default="")
    verdict = models.CharField(
        max_length=12, blank=True, default="", help_text="Validations only: passed, warning or failed."
    )
    recommended_batch_size = models.PositiveIntegerField(null=True, blank=True)
    recommended_samples_per_second = models.FloatField(null=True, blank=True)
    recommended_memory_bytes = models.BigIntegerField(null=True, blank=True)
    current_batch_size = models.PositiveIntegerField(null=True, blank=True)
    current_waste_bytes = models.BigIntegerField(null=True, blank=True)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True, help_text="Lower end of the 95 % interval. Empty: unknown.")
    speedup_high = models.FloatField(null=True, blank=True)
    is_speed_measurable = models.BooleanField(
        null=True, blank=True, help_text="Whether figures of speed are claimed. Empty: unknown (before 0.5)."
    )
    claimed_speedup = models.FloatField(
        null=True,
        blank=True,
        help_text="The speed-up, or its lower end where only that is claimed: lists sort by it.",
    )
    saving_per_run_usd = models.FloatField(null=True, blank=True)
    saving_per_year_usd = models.FloatField(null=True, blank=True)
    saving_per_year_usd_low = models.FloatField(null=True, blank=True)
    saving_per_year_usd_high = models.FloatField(null=True, blank=True)
    claimed_saving_per_year_usd = models.FloatField(
        null=True, blank=True, help_text="The saving, or its lower end where only that is claimed."
    )
    is_shared = models.BooleanField(null=True, blank=True)

    # from an estimate, or the estimate made before a measurement, with its error: 0.01 is 1 % too high
    estimated_largest_batch_size = models.PositiveIntegerField(null=True, blank=True)
    estimated_safe_batch_size = models.PositiveIntegerField(null=True, blank=True)
    estimated_cards = models.PositiveIntegerField(
        null=True, blank=True, help_text="Cards of an estimate for all cards of the catalogue."
    )
    estimated_cards_that_fit = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many of them take today's batch size with the margin."
    )
    estimate_is_calibrated = models.BooleanField(null=True, blank=True)
    estimate_peak_error = models.FloatField(null=True, blank=True)
    estimate_boundary_error = models.FloatField(null=True, blank=True)

    limit_bytes = models.BigIntegerField(null=True, blank=True, help_text="Memory limit of the run on its device.")
    memory_curve = models.JSONField(
        null=True, blank=True, help_text="A few batch sizes with their bytes, for the curve in lists."
    )
    cost_per_million_samples_usd = models.FloatField(null=True, blank=True)

    reported_from = models.CharField(
        max_length=200, blank=True, default="", help_text="Host of the sender that reported the run. Empty: run here."
    )
    is_trusted = models.BooleanField(
        default=True, help_text="Whether the figures count for recommendations, baselines, the matrix and reuse."
    )

    # annotations by people
    name = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    note = models.TextField(blank=True, default="")
    tags = models.ManyToManyField(Tag, blank=True, related_name="runs")
    is_baseline = models.BooleanField(
        "baseline",
        default=False,
        help_text="Pinned: other runs are compared with it, and it is never deleted automatically.",
    )
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="When the run was deleted. It is in no list and can be restored."
    )
    restored_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the run was last restored.",  # retention counts its age from then
    )

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
                fields=("device",),
                condition=Q(state=State.RUNNING, reported_from=""),
                name="one_running_run_per_device",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RUNNING) | (~Q(token="") & Q(heartbeat_at__isnull=False)),
                name="running_run_has_token_and_heartbeat",
            ),
            models.CheckConstraint(
                condition=Q(reported_from="", is_trusted=True) | ~Q(reported_from="") & ~Q(state=State.QUEUED),
                name="reported_run_is_never_queued",
            ),
            models.CheckConstraint(
                condition=~Q(kind=RunKind.ESTIMATE) | Q(device=None, requested_device=None, largest_batch_size=None),
                name="estimate_has_no_device_and_nothing_measured",
            ),
            models.CheckConstraint(
                condition=Q(kind=RunKind.VALIDATION, largest_batch_size=None, is_baseline=False)
                | ~Q(kind=RunKind.VALIDATION) & Q(verdict=""),
                name="only_validation_has_verdict_and_no_batch_size",
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
    def needs_device(self) -> bool:
        return asked(self.kind).uses_device

    @property
    def is_search(self) -> bool:
        """Whether it searches the largest batch size on a device, so that its figures count as measured."""
        return asked(self.kind).searches

    @property
    def published_kind(self) -> str:
        return published_kind(self.kind)

    @property
    def is_startable(self) -> bool:
        """Whether it can be started here again: no report, and of own trainings only a registered command's run."""
        if not KINDS[self.kind].is_started_here:
            return False
        is_known = self.spec.get("name") is not None or self.spec.get("catalogue") is not None
        return self.kind != RunKind.COMMAND or (is_known and not self.is_reported)

    @property
    def is_reported(self) -> bool:
        """Whether a sender on another machine executes it, and no worker of this portal."""
        return bool(self.reported_from)

    @property
    def run_spec(self) -> RunSpec:
        """The training as the engine's type, validated again when it is read from the database."""
        return read_training(self.spec)


Run._meta.get_field("kind").register_lookup(PublishedKind)


class Attempt(models.Model):
    """One execution of a run by one worker. A later attempt compares `environment` before it resumes.

    An estimate's attempt has no device. One of several devices names them all; `device` is the first.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    device = models.ForeignKey(Device, null=True, blank=True, on_delete=models.PROTECT, related_name="attempts")
    devices = models.JSONField(null=True, blank=True, help_text="Names of its devices, where it had several.")
    owner = models.CharField(max_length=250)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=12, choices=State.choices, blank=True, default="")
    cause = models.CharField(max_length=40, blank=True, default="", help_text="Why the attempt gave no result.")
    counted = models.BooleanField(default=True, help_text="Whether the attempt counts towards the limit of attempts.")
    message = models.TextField(blank=True, default="")
    exit_status = models.IntegerField(null=True, blank=True)
    environment = models.JSONField(null=True, blank=True)
    progress = models.JSONField(
        null=True,
        blank=True,
        help_text="What the engine does now, for the live page.",
    )

    class Meta:
        ordering = ("run", "number")
        indexes = (
            models.Index(fields=("-started_at",), name="attempt_latest_started"),
            models.Index(fields=("device", "-ended_at"), name="attempt_latest_ended"),
        )
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number"),)

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id}"
