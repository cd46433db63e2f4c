"""Rows -> JSON of version 1: bytes and seconds, with the unit in every name. null means not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analysis.api.result_schema import ORIGIN, RESULT, SPEC
from analysis.models import PUBLISHED_KINDS, Attempt, Measurement, Run, State, Tag
from analysis.presentation.device_cards import holder_text
from analysis.presentation.origin import Origin, describe_origin
from analysis.runs.queue.forecast import QueuePosition
from analysis.runs.queue.remaining_time import seconds_left_of
from analysis.runs.queue.scheduling import FORECAST_STARTS_MAX
from engine.facts.result import MemoryByKind

_POSITION = (
    f"1 starts next. null: the run does not wait, or more than {FORECAST_STARTS_MAX} runs are before it. "
    "Not part of the ETag."
)
_HELD_BY = (
    "What holds the device that the run waits for: the work and the process of a program that is no run of this "
    "portal, as the device's lock names them; any program of that machine may have written it. null: nothing does."
)
_TOLD: dict[str, Any] = {"read_only": True, "allow_null": True}
"""Marks a member that is no attribute of a run: `_forecast` writes it."""
_FORECAST_HELP = "Forecast from earlier runs of these models; null if unknown. Not part of the ETag."


_SPEED_HELP = {
    "recommended_batch_size": (
        "The smallest size within 3 % of the fastest that leaves the reserve free, from speeds timed side by side; the "
        "current size where no other is shown to be faster. null: speeds were not compared, or do not tell."
    ),
    "speedup": (
        "Speed of the recommended batch size divided by that of the current one, timed side by side. null: only its "
        "lower bound is known, which is `speedup_low`, or nothing is claimed, and then `speedup_low` is null too."
    ),
    "speedup_low": (
        "Lower end of the 95 % confidence interval of the speed-up. Without `speedup` it is what is claimed: the "
        "recommended size is at least this many times as fast. null in runs of versions before 0.5."
    ),
    "speedup_high": "Upper end of the 95 % confidence interval of the speed-up.",
    "is_speed_measurable": (
        "Whether speeds are known well enough for figures. If false, a size is recommended only by a lower bound of "
        "its speed-up, or kept because the other is at most 3 % faster. null in runs of versions before 0.5."
    ),
    "saving_per_year_usd": (
        "Derived from the speed-up and the assumptions of the spec. Where only the lower bound of the speed-up is "
        "known it is null, and the saving is at least `saving_per_year_usd_low`."
    ),
    "saving_per_year_usd_low": "The saving at the lower end of the speed-up's interval.",
    "saving_per_year_usd_high": "The saving at the upper end of the speed-up's interval.",
}


ORIGIN_HELP = {name: schema["description"] for name, schema in ORIGIN.items()}


class OriginSerializer(serializers.Serializer[Any]):
    """Where the figures of a run come from, and whether this lab stands for them."""

    # the base of whatever shows figures of one run: it is the run, or has it as `run`, or has its `origin`

    origin = serializers.CharField(read_only=True, allow_null=True, help_text=ORIGIN_HELP["origin"])
    reported_from = serializers.CharField(read_only=True, help_text=ORIGIN_HELP["reported_from"])
    is_trusted = serializers.BooleanField(read_only=True, help_text=ORIGIN_HELP["is_trusted"])

    def to_representation(self, instance: Any) -> dict[str, Any]:
        run = instance if isinstance(instance, Run) else _member(instance, "run")
        origin = Origin.of(run) if isinstance(run, Run) else _member(instance, "origin")
        shown = super().to_representation(instance)
        return {**shown, **origin.members} if isinstance(origin, Origin) else shown


def _member(instance: Any, name: str) -> Any:
    return instance.get(name) if isinstance(instance, Mapping) else getattr(instance, name, None)


class NameOf(serializers.CharField):
    """The name of the referenced row; null where there is none."""

    def __init__(self, source: str) -> None:
        super().__init__(source=source, read_only=True, allow_null=True)


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run in a list."""

    kind = serializers.ChoiceField(PUBLISHED_KINDS, source="published_kind", read_only=True)
    device = NameOf("device.device")
    host = NameOf("device.host.name")
    requested_device = NameOf("requested_device.device")
    requested_host = NameOf("requested_device.host.name")
    requested_by = NameOf("requested_by.username")
    origin = serializers.CharField(read_only=True, allow_null=True, help_text=ORIGIN_HELP["origin"])
    tags: serializers.SlugRelatedField[Tag] = serializers.SlugRelatedField("name", many=True, read_only=True)
    queue_position = serializers.IntegerField(help_text=_POSITION, **_TOLD)
    expected_start_at = serializers.DateTimeField(help_text=_FORECAST_HELP, **_TOLD)
    after_run = serializers.IntegerField(
        help_text="Id of the run that has to end before this one, where no other starts between. Not part of the ETag.",
        **_TOLD,
    )
    held_by = serializers.CharField(help_text=f"{_HELD_BY} Not part of the ETag.", **_TOLD)
    held_since = serializers.DateTimeField(help_text="Since when, as the lock says. Not part of the ETag.", **_TOLD)

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            *("id", "kind", "name", "tags", "is_baseline", "requested_by"),
            *("model", "gpu", "precision", "optimizer"),
            *("device", "host", "requested_device", "requested_host", "requested_kind", "requested_device_class"),
            *("device_count", "accepts_shared_device", "priority", "queue_position", "expected_start_at"),
            *("after_run", "held_by", "held_since"),
            *("origin", "reported_from", "is_trusted"),
            *("state", "phase", "attempt", "cancel_requested", "error_code", "exit_status"),
            *("created_at", "started_at", "finished_at"),
            *("device_name", "capacity_bytes", "limit_bytes", "is_shared"),
            *("largest_batch_size", "certified", "boundary_reason", "verdict"),
            *("recommended_batch_size", "recommended_samples_per_second", "recommended_memory_bytes"),
            *("current_batch_size", "current_waste_bytes"),
            *("speedup", "speedup_low", "speedup_high", "is_speed_measurable"),
            *("saving_per_run_usd", "saving_per_year_usd", "saving_per_year_usd_low", "saving_per_year_usd_high"),
            "cost_per_million_samples_usd",
            *("estimated_largest_batch_size", "estimated_safe_batch_size", "estimate_is_calibrated"),
            *("estimate_peak_error", "estimate_boundary_error"),
        )
        read_only_fields = fields
        extra_kwargs = {name: {"help_text": text} for name, text in (_SPEED_HELP | ORIGIN_HELP).items()}

    def to_representation(self, instance: Run) -> dict[str, Any]:
        """Read the attributes themselves: by DRF's fields, a list of runs takes five times as long."""
        turn: QueuePosition | None = self.context["queue_positions"].get(instance.pk)
        tags = [tag.name for tag in instance.tags.all()]
        known = {"tags": tags, "origin": describe_origin(instance), **_forecast(turn)}
        return {
            name: known[name] if name in known else self._member(instance, name, field)
            for name, field in self.fields.items()
        }

    def _member(self, run: Run, name: str, field: Any) -> Any:
        if isinstance(field, serializers.SerializerMethodField):
            return getattr(self, f"get_{name}")(run)
        return cell(_attribute(run, field.source or name))


def _forecast(turn: QueuePosition | None) -> dict[str, Any]:
    """Write what the queue forecasts for a run; null where it forecasts nothing."""
    held = turn and turn.held
    return {
        "queue_position": turn and turn.position,
        "expected_start_at": turn and cell(turn.start_at),
        "after_run": turn and turn.after_run,
        "held_by": holder_text(held) if held else None,
        "held_since": cell(held.held_since) if held else None,
    }


def _attribute(run: Run, path: str) -> Any:
    found: Any = run
    for name in path.split("."):
        found = None if found is None else getattr(found, name)
    return found


def cell(value: Any) -> Any:
    """Write a moment as the API does; all else is JSON's already."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


@extend_schema_field({"type": "object", "additionalProperties": True})
class StoredObject(serializers.JSONField):
    """A JSON object of the engine, unchanged."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)


@extend_schema_field({"type": "object", "additionalProperties": True, "nullable": True})
class StoredObjectOrNull(StoredObject):
    """A JSON object of the engine, or null while there is none."""


@extend_schema_field(SPEC)
class StoredSpec(StoredObject):
    """The spec of a run."""


class MemoryByKindSerializer(serializers.Serializer[dict[str, int]]):
    """Memory in use at the moment of the peak, by kind."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {field.name: serializers.IntegerField() for field in fields(MemoryByKind)}


class MeasurementSerializer(serializers.ModelSerializer[Measurement]):
    """One probe, with every measured figure."""

    memory_by_kind = MemoryByKindSerializer(read_only=True, allow_null=True)
    timed_step_seconds = serializers.ListField(child=serializers.FloatField(), read_only=True)
    timing_conditions = StoredObjectOrNull(
        help_text="State of the machine while steps were timed: cores used by other work, clocks, power, throttling."
    )

    class Meta:
        model = Measurement
        exclude = ("id", "run")
        read_only_fields = [field.name for field in Measurement._meta.fields]


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One execution of the run by a worker."""

    device = NameOf("device.device")
    host = NameOf("device.host.name")
    outcome = serializers.ChoiceField(State.choices, allow_blank=True, read_only=True, help_text="Empty: not over.")
    # a plain JSON field would allow null twice in the schema
    devices = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        allow_null=True,
        help_text="Names of its devices, where it had several.",
    )

    class Meta:
        model = Attempt
        exclude = ("id", "run", "owner", "environment", "progress")
        read_only_fields = [field.name for field in Attempt._meta.fields]


class RunDetailSerializer(RunSerializer):
    """A run with all its details: its spec, its result, its attempts and the probes of the last attempt."""

    spec = StoredSpec(help_text="The executed spec, with all defaults. As a request body it starts the same run.")
    result = serializers.SerializerMethodField(help_text="The engine's result; null until the run has finished.")
    seconds_left = serializers.SerializerMethodField(
        help_text="Expected time to the end of a running run; of a race what its time budget leaves, at most; "
        "null: not known. Not part of the ETag."
    )
    attempts = serializers.SerializerMethodField()
    measurements = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = (
            *RunSerializer.Meta.fields,
            *("note", "error_message", "spec", "result", "seconds_left", "attempts", "measurements"),
        )
        read_only_fields = fields

    @extend_schema_field({"oneOf": [*RESULT["oneOf"], {"type": "null"}]})
    def get_result(self, run: Run) -> dict[str, object] | None:
        return run.result if run.state == State.FINISHED else None  # a run in another state has none: it is not read

    def get_seconds_left(self, run: Run) -> float | None:
        return seconds_left_of(run)

    @extend_schema_field(AttemptSerializer(many=True))
    def get_attempts(self, run: Run) -> list[dict[str, object]]:
        rows = run.attempts.select_related("device__host").order_by("number") if run.attempt else ()
        return list(AttemptSerializer(rows, many=True).data)

    @extend_schema_field(MeasurementSerializer(many=True))
    def get_measurements(self, run: Run) -> list[dict[str, object]]:
        return list(MeasurementSerializer(Measurement.objects.of(run) if run.attempt else (), many=True).data)
