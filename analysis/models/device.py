"""Hosts and their devices, registered by their workers."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from analysis.models.querysets import DeviceQuerySet


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
