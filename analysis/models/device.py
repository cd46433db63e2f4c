"""Hosts and their devices, registered by their workers; how they were used day by day, and what cards cost."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from analysis.models.querysets import FOREIGN_SHARE_MAX, DeviceManager, DeviceQuerySet


class MaintenanceMixin(models.Model):
    """A drain or a maintenance window, in which a host or device takes no new runs. A running run is left to end."""

    drained = models.BooleanField(default=False, help_text="Takes no new runs; a running run is left to end.")
    maintenance_from = models.DateTimeField(null=True, blank=True)
    maintenance_until = models.DateTimeField(
        null=True, blank=True, help_text="End of maintenance. Empty: until further notice."
    )
    maintenance_note = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        abstract = True

    def is_in_maintenance(self, now: datetime) -> bool:
        """Whether maintenance has begun and is not over: without a start it has begun, without an end it lasts."""
        begins, ends = self.maintenance_from, self.maintenance_until
        return bool(begins or ends) and (begins is None or begins <= now) and (ends is None or now < ends)


class Host(MaintenanceMixin):
    """A machine with devices. Its workers register it under its host name or MEMORYMARK_HOST."""

    name = models.CharField(max_length=200, unique=True)
    registered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Device(MaintenanceMixin):
    """A device of a host on which runs execute: a card, a MIG instance, or the CPU. Registered by its worker.

    A card is identified by its UUID and keeps its row when it moves; other devices by host and name.

    A reported device is one that only reported runs name. It is no device of this portal: `Device.objects` leaves it
    out, so that no worker registers it, no run is placed on it and no form offers it.
    """

    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="devices")
    device = models.CharField(max_length=20, help_text="The engine's name of the device: cuda:0, xpu:0, mps:0, cpu.")
    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=200)
    uuid = models.CharField("UUID", max_length=100, blank=True, default="")
    capacity_bytes = models.BigIntegerField()
    driver = models.CharField(max_length=100, blank=True, default="")
    compute_capability = models.CharField(max_length=20, blank=True, default="")
    price_per_hour_usd = models.FloatField(
        "price per hour, US$",
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Used for the cost and savings of new runs.",
    )
    enabled = models.BooleanField(default=True, help_text="Only enabled devices take new runs.")
    allowed_users = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        help_text="People who may use the device. Empty, and no group: everybody.",
    )
    allowed_groups = models.ManyToManyField("auth.Group", blank=True, related_name="+")
    last_seen_at = models.DateTimeField(null=True, blank=True, help_text="When its worker last gave a sign of life.")
    memory_used_bytes = models.BigIntegerField(null=True, blank=True)
    memory_read_at = models.DateTimeField(null=True, blank=True)
    busy_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, editable=False, help_text="How busy any program kept the GPU, read with its memory."
    )
    foreign_used_bytes = models.BigIntegerField(
        null=True, blank=True, help_text="Memory that other processes held when a worker last tried to start a run."
    )
    held_process = models.CharField(
        max_length=100,
        blank=True,
        default="",
        editable=False,
        help_text="The process that holds the device for no run of this portal. Empty: none.",
    )
    held_work = models.CharField(max_length=200, blank=True, default="", editable=False)
    held_since = models.DateTimeField(null=True, blank=True, editable=False)
    calibration = models.JSONField(
        null=True, blank=True, help_text="The card's own constants, measured by `manage.py calibrate`."
    )
    calibrated_at = models.DateTimeField(null=True, blank=True)

    held_for = models.ForeignKey(
        "Run",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="held_devices",
        help_text="The running run of several devices that holds this one with others.",
    )

    is_reported = models.BooleanField(
        "reported", default=False, editable=False, help_text="Named by a reported run alone: no worker, takes no runs."
    )

    objects = DeviceManager()
    all_devices = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ("host__name", "device")
        constraints = (
            models.UniqueConstraint(
                fields=("uuid",), condition=~Q(uuid="") & Q(is_reported=False), name="device_once_per_uuid"
            ),
            models.UniqueConstraint(
                fields=("host", "device"), condition=Q(uuid="", is_reported=False), name="device_once_per_host"
            ),
            models.UniqueConstraint(
                fields=("host", "device", "uuid", "name"),
                condition=Q(is_reported=True),
                name="reported_device_once_per_host",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.host} {self.device})"

    @property
    def is_held(self) -> bool:
        return bool(self.held_process)

    @property
    def is_shared(self) -> bool:
        """Whether others held much at the worker's last try: only runs that accept a shared device start."""
        return (self.foreign_used_bytes or 0) > FOREIGN_SHARE_MAX * self.capacity_bytes

    @property
    def is_filled_by_others(self) -> bool:
        """Whether a GPU without a run of ours has memory in use: only runs that accept a shared device start."""
        return self.kind != "cpu" and (self.memory_used_bytes or 0) > FOREIGN_SHARE_MAX * self.capacity_bytes

    @property
    def queue_name(self) -> str:
        """Return the django-q2 queue that wakes this device's worker: a shared one would leave cards idle."""
        return f"device-{self.pk}"


class DeviceDay(models.Model):
    """One day (UTC) of a device: what all programs together held and computed, as its worker read it every few seconds.

    A day without a worker has no row: it is unknown. Only a GPU's driver tells how busy it is, as a whole.
    """

    device = models.ForeignKey("analysis.Device", on_delete=models.CASCADE, related_name="days", db_index=False)
    day = models.DateField()
    reading_count = models.PositiveIntegerField()
    used_sum_bytes = models.BigIntegerField(help_text="The sum over all readings, for their mean.")
    most_used_bytes = models.BigIntegerField()
    busy_reading_count = models.PositiveIntegerField(default=0)
    busy_sum_percent = models.BigIntegerField(
        default=0, help_text="Sum over those readings of the share of time in which the GPU computed."
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=("device", "day"), name="device_day_once"),)

    def __str__(self) -> str:
        return f"{self.device_id} on {self.day}"

    @property
    def mean_used_bytes(self) -> int:
        return self.used_sum_bytes // self.reading_count

    @property
    def busy_fraction(self) -> float | None:
        """Return the share of time in which the device computed; None where no driver told."""
        return self.busy_sum_percent / self.busy_reading_count / 100 if self.busy_reading_count else None


class GpuPrice(models.Model):
    """The price of one card of the catalogue, named by its id there."""

    gpu = models.CharField("card", max_length=40, unique=True)
    price_per_hour_usd = models.FloatField("price per hour, US$", validators=[MinValueValidator(0)])
    source = models.CharField(max_length=200, help_text="Source of the price: an offer, an invoice, a price list.")
    valid_from = models.DateField("date", help_text="Date of the source.")
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("gpu",)
        verbose_name = "GPU price"

    def __str__(self) -> str:
        return f"{self.gpu}: {self.price_per_hour_usd:g} US$ an hour"


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class DeviceActivity(TypedDict):
        takes_runs: bool
        is_up: bool
        running_id: int | None

    DeviceWithActivity: TypeAlias = WithAnnotations[Device, DeviceActivity]
else:
    DeviceWithActivity = Device
