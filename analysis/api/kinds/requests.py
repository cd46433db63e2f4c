"""What the API takes for a kind of run, and says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.contrib.auth.models import AnonymousUser, User

from analysis.models import Measurement, Run
from analysis.runs.queue.placement import placement_find
from engine.errors import SpecError
from engine.kinds import SpecOnDevice
from engine.results.result import Purpose, RunResult
from engine.spec import RunSpec

Components = dict[str, dict[str, Any]]
"""Components of the OpenAPI document by the names of the engine's classes."""
COMPONENT = "#/components/schemas/Engine{name}"
VERSION_OF_FORM = {"type": "integer", "description": "Version of this form."}
QUEUE_KEYS = ("device_class", "priority", "accepts_shared_device")
"""Keys that a request may have in addition to those of a spec."""
FIGURES = (
    *("batch_size", "outcome", "peak_allocated_bytes", "peak_reserved_bytes"),
    *("device_used_bytes", "step_seconds", "samples_per_second"),
)
"""The members of a point of a curve."""
_OF_THE_RUN = ("device", "config_parameters")
"""Members of a stored spec that say where it ran and what was counted there: a changed clone leaves them out."""
_NAMES = {str: "text", int: "a whole number", bool: "true or false"}

T = TypeVar("T")


class Requests:
    """Requests and answers of a kind. What is not overridden holds for a run on a device."""

    views: ClassVar[str] = ""
    """The module of its own addresses, below `/api/v1/validations/`; empty: it has those of runs."""
    result_type: ClassVar[type] = RunResult
    """The engine's class of which the API's description of its result is made."""
    spec_name: ClassVar[str] = RunSpec.__name__
    result_name: ClassVar[str] = RunResult.__name__
    """The components that describe the whole spec and the whole result."""
    evidence: ClassVar[str] = "measured"
    """What its figures are."""
    elsewhere: ClassVar[str] = ""
    """Why the body of `POST runs/` cannot request it, with the address that can; empty where it can."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Fields of other kinds that such a body must not have, each with why."""
    only_others: ClassVar[tuple[str, ...]] = ()
    """Fields that a clone of this kind does not take over from a run of another."""

    def own_properties(self) -> dict[str, Any]:
        """Return the JSON Schema of the members that only bodies of this kind have."""
        return {}

    def described_result(self) -> Components:
        """Return the members added by `to_dict` of the result, by the component that gets them."""
        return {}

    def kind_of_clone(self, run: Run) -> str:
        return run.kind

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        """Read the arguments of `run_create` from a body. Raises SpecError, naming the field."""
        raise SpecError("kind", self.elsewhere)

    def submission_like(self, run: Run, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        """Read the arguments for a clone of this run. Raises SpecError, naming the field."""
        return self.submission(values, user)

    def body_of(self, run: Run) -> dict[str, Any]:
        """Return the body that requests such a run. Raises SpecError where it cannot be started again."""
        settings = {name: value for name, value in run.spec.items() if name not in _OF_THE_RUN}
        return {**settings, "priority": min(run.priority, Run.Priority.NORMAL)}

    def curves(self, run: Run) -> list[dict[str, Any]]:
        """Return one curve for each card, of the probes so far."""
        found: dict[int, Measurement] = {}
        for probe in Measurement.objects.of(run):
            if probe.purpose != Purpose.SOAK or probe.batch_size not in found:
                found[probe.batch_size] = probe
        return [
            {
                "gpu": run.device_name or None,
                "capacity_bytes": run.capacity_bytes,
                "limit_bytes": run.limit_bytes,
                "points": [{name: getattr(found[size], name) for name in FIGURES} for size in sorted(found)],
            }
        ]


def component(name: str) -> dict[str, str]:
    return {"$ref": COMPONENT.format(name=name)}


def settings_in(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in QUEUE_KEYS}


def placed(spec: SpecOnDevice, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Return the arguments of `run_create` for a run on a device, by default at the device's own price."""
    device_class = checked(values, "device_class", str, "")
    return {
        "spec": spec,
        "place": placement_find(spec.device, device_class, user),
        **requested(values, user),
        "accepts_shared_device": checked(values, "accepts_shared_device", bool, False),
        "uses_device_price": "price_per_hour_usd" not in values,
    }


def requested(values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    return {
        "requested_by": user if user.is_authenticated else None,
        "priority": checked(values, "priority", int, Run.Priority.NORMAL),
    }


def checked(values: dict[str, Any], name: str, type_: type[T], default: T) -> T:
    """Return a value of this type. Raises SpecError."""
    value = values.get(name, default)
    if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
        raise SpecError(name, f"must be {_NAMES[type_]}")
    return value
