"""Settings that lists filter on have rows of their own, and the certificate an index."""

from itertools import islice

import django.db.models.deletion
from django.db import migrations, models

_FILTERED = (
    *("current_batch_size", "memory_limit_bytes", "sequence_length", "image_size"),
    *("gradient_checkpointing", "mode", "pretrained"),
)
_INPUTS = {
    "bert": ("sequence_length", 128),
    "gpt2": ("sequence_length", 128),
    "resnet": ("image_size", 224),
    "resnet18": ("image_size", 224),
    "vit_b_16": ("image_size", 224),
    "bert-tiny": ("sequence_length", 128),
    "distilbert": ("sequence_length", 128),
}
_ROWS_AT_ONCE = 2_000


def fill(apps, schema_editor):
    """Write the settings of every run, a bounded number at once."""
    run, setting = apps.get_model("analysis", "Run"), apps.get_model("analysis", "RunSetting")
    rows = run._base_manager.order_by("pk").values_list("pk", "model", "spec").iterator(_ROWS_AT_ONCE)
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        setting.objects.bulk_create(
            setting(run_id=pk, setting=text) for pk, model, spec in chunk for text in _settings(model, spec)
        )


def _settings(model, spec):
    values = {name: spec.get(name) for name in _FILTERED}
    name, default = _INPUTS.get(model, (None, None))
    if name and values[name] is None:
        values[name] = default
    return [f"{name}={value}" for name, value in values.items() if value is not None]


class Migration(migrations.Migration):
    dependencies = [("analysis", "0023_cpu_cards")]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["certified", "-created_at"], name="run_by_certificate"),
        ),
        migrations.CreateModel(
            name="RunSetting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("setting", models.CharField(max_length=60)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="setting_rows",
                        to="analysis.run",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["run"], name="setting_of_run")],
                "constraints": [models.UniqueConstraint(fields=("setting", "run"), name="setting_once_per_run")],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
