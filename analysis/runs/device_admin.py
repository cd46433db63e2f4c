"""What GPU managers do to many devices or hosts at once: enable, disable, drain, end a drain. And calibrating one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import models, transaction
from django.db.models.functions import Now

from analysis.audit.record import record_changes
from analysis.models import Device, Host
from analysis.runs.queue.create import worker_wake
from engine.estimate.calibration import Calibration
from engine.facts.result import DeviceFacts


def devices_set_enabled(*, device_ids: Collection[int], enabled: bool) -> int:
    """Enable or disable devices; returns how many changed. Workers of enabled ones look at the queue at once."""
    return _set(Device, device_ids, "enabled", enabled)


def maintenance_set_drained(*, model: type[Device] | type[Host], ids: Collection[int], drained: bool) -> int:
    """Drain devices or whole hosts, or end the drain. A drained one takes no new run; a running run is left to end."""
    return _set(model, ids, "drained", drained)


def _set(model: type[models.Model], ids: Collection[int], column: str, value: bool) -> int:
    with transaction.atomic():
        changed = list(model._default_manager.filter(pk__in=ids, **{column: not value}).select_for_update())
        model._default_manager.filter(pk__in=[row.pk for row in changed]).update(**{column: value})
        kind = model._meta.model_name
        record_changes((f"{kind}.change", row, {column: not value}, {column: value}) for row in changed)
        if value == (column == "enabled"):
            of_changed = "host__in" if model is Host else "pk__in"
            for device in Device.objects.enabled().filter(**{of_changed: [row.pk for row in changed]}):
                worker_wake(device=device)
    return len(changed)


def calibration_set(*, device: Device, calibration: Calibration) -> None:
    """Store a card's own constants: estimates for cards of its class use them from now on."""
    Device.objects.filter(pk=device.pk).update(calibration=calibration.to_dict(), calibrated_at=Now())


def device_columns(facts: DeviceFacts) -> dict[str, Any]:
    """Return the engine's facts of a device as columns, without the columns that identify the device."""
    return {
        "kind": facts.kind[:10],
        "capacity_bytes": facts.capacity_bytes,
        "driver": (facts.driver or "")[:100],
        "compute_capability": (facts.compute_capability or "")[:20],
        "last_seen_at": Now(),
    }
