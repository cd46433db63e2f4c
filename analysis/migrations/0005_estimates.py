"""Estimates: runs of their own kind, without a device; the cards' calibration and the lab's prices."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def estimates_remove(apps, schema_editor):
    """Before this there were none, and an attempt without a device has no place."""
    apps.get_model("analysis", "Run").objects.filter(kind="estimate").delete()
    schema_editor.connection.check_constraints()  # PostgreSQL alters no table whose checks are still due


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0004_host_required"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GpuPrice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("gpu", models.CharField(max_length=40, unique=True, verbose_name="card")),
                (
                    "price_per_hour_usd",
                    models.FloatField(
                        validators=[django.core.validators.MinValueValidator(0)], verbose_name="price per hour, US$"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        help_text="Where this price is from: an offer, an invoice, a price list.", max_length=200
                    ),
                ),
                ("valid_from", models.DateField(help_text="The day the source is of.", verbose_name="date")),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "GPU price",
                "ordering": ("gpu",),
            },
        ),
        migrations.AddField(
            model_name="device",
            name="calibrated_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="device",
            name="calibration",
            field=models.JSONField(blank=True, help_text="Its own constants: `manage.py calibrate`.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="estimate_boundary_error",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="estimate_is_calibrated",
            field=models.BooleanField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="estimate_peak_error",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="estimated_largest_batch_size",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="estimated_safe_batch_size",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="gpu",
            field=models.CharField(
                blank=True, default="", help_text="A card of the catalogue, or all of them.", max_length=40
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="kind",
            field=models.CharField(
                choices=[("measurement", "Measurement"), ("estimate", "Estimate")], default="measurement", max_length=12
            ),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="device",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="attempts",
                to="analysis.device",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("estimate_peak_error__isnull", False)),
                fields=["-finished_at"],
                name="run_grading_estimate",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "estimate"), _negated=True),
                    models.Q(("asks_device", None), ("device", None), ("largest_batch_size", None)),
                    _connector="OR",
                ),
                name="estimate_has_no_device_and_nothing_measured",
            ),
        ),
        migrations.AddField(
            model_name="gpuprice",
            name="updated_by",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, estimates_remove),
    ]
