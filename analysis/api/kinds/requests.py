"""What the API takes for a kind of run, and says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.members import QUEUE_KEYS, Queued, Schema, properties_of
from analysis.models import Measurement, Run
from analysis.runs.queue.placement import placement_find
from engine.errors import SpecError
from engine.facts.result import Purpose, RunResult
from engine.questions.kinds import SpecOnDevice
from engine.settings.spec import RunSpec
from engine.settings.spec_checks import settings_of

_OF_THE_RUN = ("device", "config_parameters")
"""Members of a stored spec that say where it ran and what was counted there: a changed clone leaves them out."""


class Requests:
    """Requests and answers of a kind. What is not overridden holds for a run on a device."""

    takes: ClassVar[tuple[type, ...]] = (RunSpec, Queued)
    """The classes that declare the members of its body."""
    without: ClassVar[tuple[str, ...]] = ()
    """Members of these classes that its body does not have."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Members of other kinds that its body must not have, each with why."""
    elsewhere: ClassVar[str] = ""
    """Why the body of `POST runs/` cannot request it, with the address that can; empty where it can."""
    result_type: ClassVar[type] = RunResult
    """The engine's class of which the API's description of its result is made."""
    spec_name: ClassVar[str] = RunSpec.__name__
    result_name: ClassVar[str] = RunResult.__name__
    """The components that describe the whole spec and the whole result."""
    evidence: ClassVar[str] = "measured"
    """What its figures are."""

    @property
    def members(self) -> set[str]:
        """Return the names of the members of its body."""
        return {name for each in self.takes for name in settings_of(each)}.difference(self.without)

    @property
    def properties(self) -> dict[str, Schema]:
        """Return the JSON Schema of each member of its body."""
        found = {name: schema for each in self.takes for name, schema in properties_of(each).items()}
        return {name: found[name] for name in found if name not in self.without}

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
                "points": [found[size] for size in sorted(found)],
            }
        ]


def settings_in(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in QUEUE_KEYS}


def placed(spec: SpecOnDevice, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Return the arguments of `run_create` for a run on a device, by default at the device's own price."""
    queued = Queued.of(values)
    return {
        "spec": spec,
        "place": placement_find(spec.device, queued.device_class, user),
        **requested(queued, user),
        "accepts_shared_device": queued.accepts_shared_device,
        "uses_device_price": "price_per_hour_usd" not in values,
    }


def requested(queued: Queued, user: User | AnonymousUser) -> dict[str, Any]:
    return {"requested_by": user if user.is_authenticated else None, "priority": queued.priority}
