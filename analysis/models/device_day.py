"""The memory in use on a device, day by day."""

from __future__ import annotations

from django.db import models


class DeviceDay(models.Model):
    """One day (UTC) of a device: the memory that all programs together held, as its worker read it every few seconds.

    One row a day and device, so nothing has to be thinned out. A day without a worker has no row: it is unknown.
    """

    device = models.ForeignKey("analysis.Device", on_delete=models.CASCADE, related_name="days", db_index=False)
    day = models.DateField()
    reading_count = models.PositiveIntegerField()
    used_sum_bytes = models.BigIntegerField(help_text="The sum over all readings, for their mean.")
    most_used_bytes = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("device", "day"), name="device_day_once"),)

    def __str__(self) -> str:
        return f"{self.device_id} on {self.day}"

    @property
    def mean_used_bytes(self) -> int:
        return self.used_sum_bytes // self.reading_count
