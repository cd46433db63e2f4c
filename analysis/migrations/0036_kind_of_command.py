"""A training command or function of somebody's own is a kind of run; lists and the API still name it a measurement."""

import django.db.models.functions
from django.db import migrations, models

AT_ONCE = 2_000


def mark_commands(apps, schema_editor):
    """Give the runs whose spec has a command or a function the new kind."""
    measured = apps.get_model("analysis", "Run")._base_manager.filter(kind="measurement")
    _change(measured.filter(spec__has_any_keys=["command", "function"]), "command")


def put_back(apps, schema_editor):
    """Make them measurements again: earlier versions tell them by their spec."""
    _change(apps.get_model("analysis", "Run")._base_manager.filter(kind="command"), "measurement")


def _change(runs, kind):
    """Change a few at a time: each statement stays short on SQLite and on PostgreSQL. What is shown stays the same."""
    last = 0
    while ids := list(runs.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        runs.model._base_manager.filter(pk__in=ids).update(kind=kind)
        last = ids[-1]


class Migration(migrations.Migration):
    dependencies = [("analysis", "0035_device_holder")]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="kind",
            field=models.CharField(
                choices=[
                    ("measurement", "Measurement"),
                    ("command", "Command"),
                    ("estimate", "Estimate"),
                    ("validation", "Validation"),
                ],
                default="measurement",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="progress",
            field=models.JSONField(blank=True, help_text="What the engine does now, for the live page.", null=True),
        ),
        migrations.RunPython(mark_commands, put_back),
        migrations.RemoveIndex("run", "run_by_kind"),
        migrations.AddIndex(
            "run",
            models.Index(
                django.db.models.functions.Replace("kind", models.Value("command"), models.Value("measurement")),
                models.OrderBy(models.F("created_at"), descending=True),
                name="run_by_kind",
            ),
        ),
    ]
