"""The first tables."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Device",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=200)),
                (
                    "device",
                    models.CharField(help_text="As the engine names it: cuda:0, xpu:0, mps:0, cpu.", max_length=20),
                ),
                ("kind", models.CharField(max_length=10)),
                ("name", models.CharField(max_length=200)),
                ("uuid", models.CharField(blank=True, default="", max_length=100)),
                ("capacity_bytes", models.BigIntegerField()),
                ("driver", models.CharField(blank=True, default="", max_length=100)),
                ("compute_capability", models.CharField(blank=True, default="", max_length=20)),
                (
                    "price_per_hour_usd",
                    models.FloatField(
                        blank=True,
                        help_text="Assumed in the savings of new runs.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                ("enabled", models.BooleanField(default=True, help_text="Only enabled devices take new runs.")),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                ("memory_used_bytes", models.BigIntegerField(blank=True, null=True)),
                ("memory_read_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("host", "device"),
                "constraints": [models.UniqueConstraint(fields=("host", "device"), name="device_once_per_host")],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=40)),
                ("spec", models.JSONField()),
                ("precision", models.CharField(max_length=10)),
                ("optimizer", models.CharField(max_length=20)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="queued",
                        max_length=12,
                    ),
                ),
                ("phase", models.CharField(blank=True, default="", max_length=20)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("token", models.CharField(blank=True, default="", max_length=32)),
                ("owner", models.CharField(blank=True, default="", max_length=250)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                ("error_code", models.CharField(blank=True, default="", max_length=40)),
                ("error_message", models.TextField(blank=True, default="")),
                (
                    "exit_status",
                    models.IntegerField(
                        blank=True,
                        help_text="Exit status of the engine; a negative number is the signal that ended it.",
                        null=True,
                    ),
                ),
                ("result", models.JSONField(blank=True, null=True)),
                ("device_name", models.CharField(blank=True, default="", max_length=200)),
                ("capacity_bytes", models.BigIntegerField(blank=True, null=True)),
                ("largest_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("certified", models.BooleanField(blank=True, null=True)),
                ("boundary_reason", models.CharField(blank=True, default="", max_length=20)),
                ("recommended_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("recommended_samples_per_second", models.FloatField(blank=True, null=True)),
                ("recommended_memory_bytes", models.BigIntegerField(blank=True, null=True)),
                ("current_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("current_waste_bytes", models.BigIntegerField(blank=True, null=True)),
                ("speedup", models.FloatField(blank=True, null=True)),
                ("saving_per_run_usd", models.FloatField(blank=True, null=True)),
                ("saving_per_year_usd", models.FloatField(blank=True, null=True)),
                ("is_shared", models.BooleanField(blank=True, null=True)),
                (
                    "device",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="analysis.device"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-id"),
            },
        ),
        migrations.CreateModel(
            name="Measurement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("sequence", models.PositiveIntegerField()),
                ("recorded_at", models.DateTimeField(auto_now_add=True)),
                ("batch_size", models.PositiveIntegerField()),
                ("outcome", models.CharField(max_length=20)),
                ("purpose", models.CharField(max_length=20)),
                ("fresh_process", models.BooleanField(default=False)),
                ("steps", models.PositiveIntegerField(default=0)),
                ("peak_allocated_bytes", models.BigIntegerField(null=True)),
                ("peak_reserved_bytes", models.BigIntegerField(null=True)),
                ("device_used_bytes", models.BigIntegerField(null=True)),
                ("allocator_retries", models.PositiveIntegerField(null=True)),
                ("peak_phase", models.CharField(blank=True, default="", max_length=40)),
                ("memory_by_kind", models.JSONField(null=True)),
                ("step_seconds", models.FloatField(null=True)),
                ("timed_step_seconds", models.JSONField(default=list)),
                ("timing_is_steady", models.BooleanField(null=True)),
                ("samples_per_second", models.FloatField(null=True)),
                ("error_type", models.CharField(blank=True, default="", max_length=200)),
                ("error_message", models.TextField(blank=True, default="")),
                ("failed_phase", models.CharField(blank=True, default="", max_length=40)),
                ("wall_seconds", models.FloatField(default=0.0)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="measurements", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "attempt", "sequence"),
            },
        ),
        migrations.CreateModel(
            name="RunLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("sequence", models.PositiveIntegerField()),
                ("recorded_at", models.DateTimeField(auto_now_add=True)),
                (
                    "level",
                    models.CharField(
                        choices=[("info", "Info"), ("warning", "Warning"), ("error", "Error")],
                        default="info",
                        max_length=10,
                    ),
                ),
                ("message", models.CharField(max_length=2000)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="log_lines", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "attempt", "sequence"),
            },
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["-created_at", "-id"], name="run_newest_first"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device", "state", "created_at"], name="run_waiting_for_device"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["state", "-created_at"], name="run_by_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["model", "-created_at"], name="run_by_model"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "running")), fields=("device",), name="one_running_run_per_device"
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "running"), _negated=True),
                    models.Q(models.Q(("token", ""), _negated=True), ("heartbeat_at__isnull", False)),
                    _connector="OR",
                ),
                name="running_run_has_token_and_heartbeat",
            ),
        ),
        migrations.AddConstraint(
            model_name="measurement",
            constraint=models.UniqueConstraint(
                fields=("run", "attempt", "sequence"), name="measurement_once_per_sequence"
            ),
        ),
        migrations.AddConstraint(
            model_name="runlog",
            constraint=models.UniqueConstraint(
                fields=("run", "attempt", "sequence"), name="log_line_once_per_sequence"
            ),
        ),
    ]
