"""Validations: a kind of run with a verdict, and no batch size."""

from django.conf import settings
from django.db import migrations, models


def remove_validations(apps, schema_editor):
    """Delete the runs of a kind that an older version does not know."""
    apps.get_model("analysis", "Run")._base_manager.filter(kind="validation").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0025_progress_and_cards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, remove_validations),
        migrations.AddField(
            model_name="run",
            name="verdict",
            field=models.CharField(
                blank=True, default="", help_text="Validations only: passed, warning or failed.", max_length=12
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="kind",
            field=models.CharField(
                choices=[("measurement", "Measurement"), ("estimate", "Estimate"), ("validation", "Validation")],
                default="measurement",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("is_baseline", False), ("kind", "validation"), ("largest_batch_size", None)),
                    models.Q(models.Q(("kind", "validation"), _negated=True), ("verdict", "")),
                    _connector="OR",
                ),
                name="only_validation_has_verdict_and_no_batch_size",
            ),
        ),
    ]
