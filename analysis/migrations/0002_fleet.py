"""Hosts, attempts and what a run asks for. The rows that exist are taken over in 0003."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("owner", models.CharField(max_length=250)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="",
                        max_length=12,
                    ),
                ),
                (
                    "cause",
                    models.CharField(blank=True, default="", help_text="Why it did not give a result.", max_length=40),
                ),
                (
                    "counted",
                    models.BooleanField(default=True, help_text="Whether it counts against the run's attempts."),
                ),
                ("message", models.TextField(blank=True, default="")),
                ("exit_status", models.IntegerField(blank=True, null=True)),
                ("environment", models.JSONField(blank=True, null=True)),
            ],
            options={
                "ordering": ("run", "number"),
            },
        ),
        migrations.CreateModel(
            name="Host",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "drained",
                    models.BooleanField(default=False, help_text="Takes no new run; what runs now is left to end."),
                ),
                ("maintenance_from", models.DateTimeField(blank=True, null=True)),
                (
                    "maintenance_until",
                    models.DateTimeField(blank=True, help_text="Empty: until further notice.", null=True),
                ),
                ("maintenance_note", models.CharField(blank=True, default="", max_length=200)),
                ("name", models.CharField(max_length=200, unique=True)),
                ("registered_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.AlterModelOptions(
            name="device",
            options={"ordering": ("host__name", "device")},
        ),
        migrations.RemoveConstraint(
            model_name="device",
            name="device_once_per_host",
        ),
        migrations.RemoveIndex(
            model_name="run",
            name="run_waiting_for_device",
        ),
        migrations.AddField(
            model_name="device",
            name="allowed_groups",
            field=models.ManyToManyField(blank=True, related_name="+", to="auth.group"),
        ),
        migrations.AddField(
            model_name="device",
            name="allowed_users",
            field=models.ManyToManyField(
                blank=True,
                help_text="Empty, with no group either: everybody.",
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="drained",
            field=models.BooleanField(default=False, help_text="Takes no new run; what runs now is left to end."),
        ),
        migrations.AddField(
            model_name="device",
            name="foreign_used_bytes",
            field=models.BigIntegerField(
                blank=True, help_text="What other processes held when a worker last wanted to start a run.", null=True
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="maintenance_from",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="device",
            name="maintenance_note",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddField(
            model_name="device",
            name="maintenance_until",
            field=models.DateTimeField(blank=True, help_text="Empty: until further notice.", null=True),
        ),
        migrations.AddField(
            model_name="measurement",
            name="is_carried",
            field=models.BooleanField(default=False, help_text="Measured in an earlier attempt, and carried over."),
        ),
        migrations.AddField(
            model_name="run",
            name="accepts_shared_device",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="asks_device",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs_asking_for_it",
                to="analysis.device",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="asks_device_class",
            field=models.CharField(blank=True, default="", help_text="Part of the card's name.", max_length=100),
        ),
        migrations.AddField(
            model_name="run",
            name="asks_kind",
            field=models.CharField(blank=True, default="", max_length=10),
        ),
        migrations.AddField(
            model_name="run",
            name="uses_device_price",
            field=models.BooleanField(
                default=True, help_text="Whether the device's own price stands in for the spec's."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="needs_bytes",
            field=models.BigIntegerField(blank=True, help_text="The memory limit it asks to be held to.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="needs_compute_capability",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="priority",
            field=models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="suspect_at",
            field=models.DateTimeField(blank=True, help_text="When its heartbeat was first found missing.", null=True),
        ),
        migrations.AlterField(
            model_name="device",
            name="last_seen_at",
            field=models.DateTimeField(blank=True, help_text="When its worker last gave a sign of life.", null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="device",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="analysis.device",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "queued")),
                fields=["requested_by", "priority", "created_at", "id"],
                name="run_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["requested_by", "-started_at"], name="run_by_person"),
        ),
        migrations.AddField(
            model_name="attempt",
            name="device",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="attempts", to="analysis.device"
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="attempts", to="analysis.run"
            ),
        ),
        migrations.RenameField(model_name="device", old_name="host", new_name="host_name"),
        migrations.AddField(
            model_name="device",
            name="host",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="devices", to="analysis.host"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)), fields=["-finished_at"], name="run_latest_ended"
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["-started_at"], name="attempt_latest_started"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["device", "-ended_at"], name="attempt_latest_ended"),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number"),
        ),
    ]
