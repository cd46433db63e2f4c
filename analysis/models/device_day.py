"""How a device was used day by day, by all programs."""

from __future__ import annotations

from django.db import models


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
