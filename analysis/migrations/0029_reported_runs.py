"""Runs that other machines report, and whose reports are trusted."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0028_frontier"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_key", models.CharField(max_length=32, unique=True)),
                ("engine_version", models.CharField(blank=True, default="", max_length=40)),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="By the clock of the sender, which may be wrong: nothing is ordered by it.",
                        null=True,
                    ),
                ),
                ("events_received", models.PositiveIntegerField(default=0)),
                (
                    "document_sha256",
                    models.CharField(
                        blank=True,
                        help_text="SHA-256 of the result's bytes as received.",
                        max_length=64,
                        null=True,
                        unique=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trust",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "host",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="As the sender names it: anybody who may report can.",
                        max_length=200,
                    ),
                ),
                ("trusted_at", models.DateTimeField(auto_now_add=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "trust",
                "ordering": ("-trusted_at", "-id"),
            },
        ),
        migrations.RemoveConstraint(
            model_name="device",
            name="device_once_per_uuid",
        ),
        migrations.RemoveConstraint(
            model_name="device",
            name="device_once_per_host",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="one_running_run_per_device",
        ),
        migrations.AddField(
            model_name="device",
            name="is_reported",
            field=models.BooleanField(
                default=False, editable=False, help_text="Named by a reported run alone: no worker, takes no runs."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="is_trusted",
            field=models.BooleanField(
                default=True,
                help_text="Whether the figures count for recommendations, baselines, the matrix and reuse.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="reported_from",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Host of the sender that reported the run. Empty: run here.",
                max_length=200,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("reported_from", ""), _negated=True), fields=["-created_at"], name="run_reported"
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(models.Q(("uuid", ""), _negated=True), ("is_reported", False)),
                fields=("uuid",),
                name="device_once_per_uuid",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_reported", False), ("uuid", "")),
                fields=("host", "device"),
                name="device_once_per_host",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_reported", True)),
                fields=("host", "device", "uuid", "name"),
                name="reported_device_once_per_host",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("reported_from", ""), ("state", "running")),
                fields=("device",),
                name="one_running_run_per_device",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("is_trusted", True), ("reported_from", "")),
                    models.Q(
                        models.Q(("reported_from", ""), _negated=True), models.Q(("state", "queued"), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="reported_run_is_never_queued",
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="report", to="analysis.run"
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="token",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: reported with a name and a password.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="reports",
                to="analysis.apitoken",
            ),
        ),
        migrations.AddField(
            model_name="trust",
            name="revoked_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="trust",
            name="token",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="trust",
                to="analysis.apitoken",
            ),
        ),
        migrations.AddField(
            model_name="trust",
            name="trusted_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("token__isnull", True), models.Q(("host", ""), _negated=True)),
                    models.Q(("host", ""), ("token__isnull", False)),
                    _connector="OR",
                ),
                name="trust_in_a_token_or_a_host",
                violation_error_message="Name a token or a host, not both.",
            ),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None), ("token__isnull", False)),
                fields=("token",),
                name="trust_once_per_token",
                violation_error_message="This token is trusted already.",
            ),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None), models.Q(("host", ""), _negated=True)),
                fields=("host",),
                name="trust_once_per_host",
                violation_error_message="This host is trusted already.",
            ),
        ),
    ]
