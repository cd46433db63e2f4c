"""The requested placement of a run: one device, or any of a kind, optionally of a class ("A100")."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from analysis.models import Device, Run
from engine.errors import SpecError

_CLASS_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Placement:
    """Either `device`; or `kind` and optionally `device_class`, a part of the card's name."""

    device: Device | None = None
    kind: str = ""
    device_class: str = ""

    def __str__(self) -> str:
        return str(self.device) if self.device else f"{self.device_class} {self.kind} device".strip()


ANYWHERE = Placement()
"""That of a run that needs no device."""


def placement_find(name: str, device_class: str = "", user: User | AnonymousUser | None = None) -> Placement:
    """Return the device of a name (`cuda:1`, `cpu`); any device of a kind; for `auto`, any of the best kind.

    Only enabled devices that this person may use count. Raises SpecError, which lists the available devices.
    """
    is_named = ":" in name or name == "cpu"
    wanted_class = device_class.strip()
    if wanted_class and is_named:
        raise SpecError("device_class", "a class is allowed with `auto` or a kind, not with the name of one device")
    if len(wanted_class) > _CLASS_LENGTH or not wanted_class.isprintable():
        raise SpecError("device_class", f"must be part of a card's name, at most {_CLASS_LENGTH} characters")
    offered = list(Device.objects.enabled().allowing(user).best_first())
    candidates = [d for d in offered if (d.device == name if is_named else name in ("auto", d.kind))]
    if not candidates:
        names = ", ".join(sorted({device.device for device in offered})) or "none (start `manage.py up`)"
        raise SpecError("device", f"no enabled device {name}; available: {names}")
    matching = [device for device in candidates if wanted_class.lower() in device.name.lower()]
    if not matching:
        available = ", ".join(sorted({device.name for device in candidates}))
        raise SpecError("device_class", f"no enabled device is called {wanted_class}; available: {available}")
    return Placement(device=matching[0]) if is_named else Placement(kind=matching[0].kind, device_class=wanted_class)


def placement_of(run: Run) -> Placement:
    if run.requested_device is not None:
        return Placement(device=run.requested_device)
    return Placement(kind=run.requested_kind, device_class=run.requested_device_class)
