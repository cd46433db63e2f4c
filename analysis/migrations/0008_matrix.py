"""The matrix: one row per card, workload, settings and kind, filled from the runs of before."""

import django.db.models.deletion
from django.db import migrations, models

from analysis.services.matrix import cells_rebuild


def fill(apps, schema_editor):
    cells_rebuild(apps.get_model("analysis", "Run"), apps.get_model("analysis", "MatrixCell"))


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0007_trend"),
    ]

    operations = [
        migrations.CreateModel(
            name="MatrixCell",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("answered_at", models.DateTimeField(help_text="When the run finished.")),
                ("kind", models.CharField(max_length=10)),
                ("card", models.CharField(max_length=250)),
                ("card_name", models.CharField(help_text="As the device or the catalogue names it.", max_length=200)),
                ("is_cpu", models.BooleanField(default=False)),
                ("memory_bytes", models.BigIntegerField(help_text="Of the card; of a CPU, what it was held to.")),
                ("model", models.CharField(max_length=40)),
                ("input_size", models.PositiveIntegerField()),
                ("precision", models.CharField(max_length=10)),
                ("optimizer", models.CharField(max_length=20)),
                (
                    "settings",
                    models.CharField(blank=True, help_text="The others that are no defaults.", max_length=250),
                ),
                ("largest_batch_size", models.PositiveIntegerField(help_text="0: not even one sample.")),
                (
                    "safe_batch_size",
                    models.PositiveIntegerField(help_text="Of an estimate: within its margin.", null=True),
                ),
                (
                    "used_batch_size",
                    models.PositiveIntegerField(help_text="The recommended one: the speed is of it.", null=True),
                ),
                ("samples_per_second", models.FloatField(null=True)),
                (
                    "headroom_bytes",
                    models.BigIntegerField(help_text="What the largest batch size left of the memory.", null=True),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="matrix_cells", to="analysis.run"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["precision", "optimizer", "settings"], name="matrix_by_settings")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "card", "model", "input_size", "precision", "optimizer", "settings"),
                        name="matrix_cell_once",
                    )
                ],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
