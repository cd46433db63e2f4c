"""Tables and indexes of the trend page."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from analysis.models.run_states import State

NOTE_LENGTH = 500
TREND_INDEX = models.Index(
    fields=("model", "device_name", "precision", "optimizer", "-finished_at"),
    condition=models.Q(state=State.FINISHED),
    name="run_trend",
)
"""Finds the newest runs of one series among a million others."""


class TrendAcknowledgement(models.Model):
    """A person's note on a step of a trend. The step is the one that begins with `run`."""

    run = models.ForeignKey(
        "analysis.Run", on_delete=models.CASCADE, related_name="trend_acknowledgements", db_index=False
    )
    metric = models.CharField(max_length=20)
    note = models.CharField(max_length=NOTE_LENGTH)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    acknowledged_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "metric"), name="trend_step_acknowledged_once"),)

    def __str__(self) -> str:
        return f"{self.metric} from run {self.run_id}: {self.note}"
