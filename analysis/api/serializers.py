"""Rows -> JSON of version 1: bytes and seconds, the unit in every name."""

from __future__ import annotations

from datetime import datetime

from rest_framework import serializers

from analysis.forecast import Turn
from analysis.models import Attempt, Measurement, Run


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run as lists show it."""

    device = serializers.CharField(source="device.device", default=None)
    host = serializers.CharField(source="device.host.name", default=None)
    asks_device = serializers.CharField(source="asks_device.device", default=None)
    asks_host = serializers.CharField(source="asks_device.host.name", default=None)
    queue_position = serializers.SerializerMethodField()
    expected_start_at = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = (
            "id",
            "kind",
            "gpu",
            "model",
            "device",
            "host",
            "asks_device",
            "asks_host",
            "asks_kind",
            "asks_device_class",
            "accepts_shared_device",
            "priority",
            "queue_position",
            "expected_start_at",
            "precision",
            "optimizer",
            "state",
            "phase",
            "attempt",
            "created_at",
            "started_at",
            "finished_at",
            "cancel_requested",
            "error_code",
            "error_message",
            "exit_status",
            "device_name",
            "capacity_bytes",
            "largest_batch_size",
            "certified",
            "boundary_reason",
            "recommended_batch_size",
            "recommended_samples_per_second",
            "recommended_memory_bytes",
            "current_batch_size",
            "current_waste_bytes",
            "speedup",
            "saving_per_run_usd",
            "saving_per_year_usd",
            "is_shared",
            "estimated_largest_batch_size",
            "estimated_safe_batch_size",
            "estimate_is_calibrated",
            "estimate_peak_error",
            "estimate_boundary_error",
        )

    def get_queue_position(self, run: Run) -> int | None:
        turn = self._turn(run)
        return turn and turn.position

    def get_expected_start_at(self, run: Run) -> datetime | None:
        turn = self._turn(run)
        return turn and turn.start_at

    def _turn(self, run: Run) -> Turn | None:
        """The view asks once for all runs that it shows."""
        return self.context["turns"].get(run.pk)


class MeasurementSerializer(serializers.ModelSerializer[Measurement]):
    """One probe: every figure as it was measured."""

    class Meta:
        model = Measurement
        exclude = ("id", "run")


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One execution of the run."""

    device = serializers.CharField(source="device.device", default=None)
    host = serializers.CharField(source="device.host.name", default=None)

    class Meta:
        model = Attempt
        exclude = ("id", "run", "owner", "environment")


class RunDetailSerializer(RunSerializer):
    """A run with its spec, its result, its attempts and the probes of the last one."""

    attempts = serializers.SerializerMethodField()

    measurements = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "spec", "result", "attempts", "measurements")

    def get_attempts(self, run: Run) -> list[dict[str, object]]:
        return list(AttemptSerializer(run.attempts.select_related("device__host"), many=True).data)

    def get_measurements(self, run: Run) -> list[dict[str, object]]:
        return list(MeasurementSerializer(Measurement.objects.of(run), many=True).data)
