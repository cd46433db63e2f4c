"""Where a run wants to run: one device, or any of a kind, of a class ("A100") if one is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.models import Device, Run
from analysis.models.querysets import compute_capability
from analysis.runs.scheduling import ResourceRequest, Slot
from engine.errors import SpecError

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

_CLASS_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Placement:
    """`device` alone; or `kind` with, if wanted, `device_class`: text that the card's name holds."""

    device: Device | None = None
    kind: str = ""
    device_class: str = ""

    def __str__(self) -> str:
        return str(self.device) if self.device else f"{self.device_class} {self.kind} device".strip()


def placement_find(name: str, device_class: str = "", user: User | AnonymousUser | None = None) -> Placement:
    """For a name (`cuda:1`, `cpu`): that device. For `auto`, the best kind there is, or a kind: any of it.

    Only enabled devices that this person may use count. Raises SpecError, naming what there is.
    """
    is_named = ":" in name or name == "cpu"
    wanted_class = _checked_class(device_class, is_named)
    offered = list(Device.objects.enabled().allowing(user).best_first())
    of_kind = [device for device in offered if _is_requested(name, is_named, device)]
    if not of_kind:
        raise SpecError("device", f"no enabled device {name}; there are: {_names(offered)}")
    matching = [device for device in of_kind if wanted_class.lower() in device.name.lower()]
    if not matching:
        there_are = ", ".join(sorted({device.name for device in of_kind}))
        raise SpecError("device_class", f"no enabled device is called {wanted_class}; there are: {there_are}")
    return Placement(device=matching[0]) if is_named else Placement(kind=matching[0].kind, device_class=wanted_class)


def placement_of(run: Run) -> Placement:
    """Return what a stored run asked for, to ask for it again."""
    if run.requested_device is not None:
        return Placement(device=run.requested_device)
    return Placement(kind=run.requested_kind, device_class=run.requested_device_class)


def request_of(run: Run) -> ResourceRequest:
    """Read a run's columns as scheduling does."""
    return ResourceRequest(
        device_id=run.requested_device_id,
        kind=run.requested_kind,
        device_class=run.requested_device_class,
        needs_bytes=run.needs_bytes,
        needs_compute_capability=run.needs_compute_capability,
        accepts_shared_device=run.accepts_shared_device,
    )


def slot_of(device: Device, allowed: Iterable[int] | None = None) -> Slot:
    """Read a device's columns as scheduling does; `allowed` is its allow-list, None where there is none."""
    return Slot(
        device_id=device.pk,
        kind=device.kind,
        name=device.name,
        capacity_bytes=device.capacity_bytes,
        compute_capability=compute_capability(device),
        foreign_used_bytes=device.foreign_used_bytes,
        allowed=None if allowed is None else frozenset(allowed),
    )


def _checked_class(device_class: str, is_named: bool) -> str:
    wanted = device_class.strip()
    if wanted and is_named:
        raise SpecError("device_class", "a class goes with `auto` or a kind of device, not with a device's own name")
    if len(wanted) > _CLASS_LENGTH or not wanted.isprintable():
        raise SpecError("device_class", f"must be part of a card's name, at most {_CLASS_LENGTH} characters")
    return wanted


def _is_requested(requested: str, is_named: bool, device: Device) -> bool:
    if is_named:
        return device.device == requested
    return requested in ("auto", device.kind)


def _names(devices: Iterable[Device]) -> str:
    return ", ".join(sorted({device.device for device in devices})) or "none (start `manage.py up`)"
