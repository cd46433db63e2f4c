"""The words in which runs, devices and measurements are read. Nothing here writes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.functions import Now

if TYPE_CHECKING:
    from analysis.models import Device, Measurement, Run, RunLog  # noqa: F401


SEEN_LATELY = timedelta(seconds=60)
"""Within this time a host that is up has renewed `Device.last_seen_at` many times."""


class DeviceQuerySet(models.QuerySet["Device"]):
    """Devices of all hosts that ever registered here."""

    def enabled(self) -> DeviceQuerySet:
        return self.filter(enabled=True)

    def on_host(self, host: str) -> DeviceQuerySet:
        return self.filter(host=host)

    def best_first(self) -> DeviceQuerySet:
        """The order in which `auto` chooses: hosts that are up, accelerators before the CPU, larger ones first."""
        is_away = models.Case(models.When(last_seen_at__gte=Now() - SEEN_LATELY, then=0), default=1)
        is_cpu = models.Case(models.When(kind="cpu", then=1), default=0)
        return self.order_by(is_away, is_cpu, "-capacity_bytes", "id")


class RunQuerySet(models.QuerySet["Run"]):
    """Runs, in the words that pages and API use."""

    def update(self, **columns: Any) -> int:
        """Also moves `updated_at`: `auto_now` does not see an UPDATE, and pollers compare it."""
        return super().update(**{"updated_at": Now(), **columns})

    def queued(self) -> RunQuerySet:
        return self.filter(state="queued")

    def running(self) -> RunQuerySet:
        return self.filter(state="running")

    def held_by(self, run_id: int, token: str) -> RunQuerySet:
        """The run, if this token still owns it. Every write to a running run goes through here."""
        return self.filter(pk=run_id, token=token, state="running")

    def waiting_for(self, device: Device) -> RunQuerySet:
        """What this device should run next, oldest first."""
        return self.queued().filter(device=device, cancel_requested=False).order_by("created_at", "id")

    def newest_first(self) -> RunQuerySet:
        return self.order_by("-created_at", "-id")

    def for_history(self) -> RunQuerySet:
        """Rows for a list: no detail that a list does not show is loaded."""
        return self.select_related("device", "requested_by").defer("result").newest_first()


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    """Stored probes."""

    def of(self, run: Run) -> MeasurementQuerySet:
        """Of the run's last attempt, in the order they were made."""
        return self.filter(run=run, attempt=run.attempt).order_by("sequence")


class RunLogQuerySet(models.QuerySet["RunLog"]):
    """Log lines."""

    def of(self, run: Run) -> RunLogQuerySet:
        """Of the run's last attempt, in the order they were written."""
        return self.filter(run=run, attempt=run.attempt).order_by("sequence")
