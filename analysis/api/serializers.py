"""Rows -> JSON of version 1: bytes and seconds, the unit in every name."""

from __future__ import annotations

from rest_framework import serializers

from analysis.models import Measurement, Run


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run as lists show it."""

    device = serializers.CharField(source="device.device")
    host = serializers.CharField(source="device.host")

    class Meta:
        model = Run
        fields = (
            "id",
            "model",
            "device",
            "host",
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
        )


class MeasurementSerializer(serializers.ModelSerializer[Measurement]):
    """One probe: every figure as it was measured."""

    class Meta:
        model = Measurement
        exclude = ("id", "run")


class RunDetailSerializer(RunSerializer):
    """A run with its spec, its result and the probes of its last attempt."""

    measurements = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "spec", "result", "measurements")

    def get_measurements(self, run: Run) -> list[dict[str, object]]:
        return list(MeasurementSerializer(Measurement.objects.of(run), many=True).data)
