"""The matrix: one row per card, workload, settings and kind, filled from the runs of before."""

import django.db.models.deletion
from django.db import migrations, models

from engine.catalog import WORKLOADS
from engine.estimate.gpus import match
from engine.text.units import format_bytes

READ_AT_ONCE = 500
LENGTH_MAX = 250
KEY = ("kind", "card", "model", "input_size", "precision", "optimizer", "settings")
DEFAULTS = {"gradient_checkpointing": False, "mode": "train", "pretrained": False}
# keys of later versions, for where the cells are filled in anew
DEFAULTS |= {"accumulation_steps": 1, "attention": "auto", "sequences": "full"}
NOT_SETTINGS = {
    *("model", "device", "precision", "optimizer", "sequence_length", "image_size", "memory_limit_bytes"),
    *("current_batch_size", "start_batch_size", "max_batch_size", "time_budget_seconds", "soak_steps"),
    "reserve_fraction",  # a key of later versions
    *("price_per_hour_usd", "hours_per_run", "runs_per_year"),
}

# What follows repeats the portal's code as it was at this migration: the code may be renamed and changed, and an old
# database is still filled as it was then. The catalogues of models and cards are the engine's of today.


def fill(apps, schema_editor):
    """Make a cell of each newest run. A run that could only repeat a newer one is passed over without its result."""
    Run, MatrixCell = (apps.get_model("analysis", name) for name in ("Run", "MatrixCell"))
    may_have_cells = models.Q(state="finished", deleted_at=None) & (
        models.Q(kind="estimate") | models.Q(kind="measurement", certified=True, is_shared=False)
    )
    columns = ("kind", "gpu", "device_name", "capacity_bytes", "limit_bytes", "model", "precision", "optimizer")
    runs = Run.objects.filter(may_have_cells).order_by("-finished_at", "-pk")
    seen, stored = set(), set()
    for pk, spec, *rest in runs.values_list("pk", "spec", *columns).iterator(READ_AT_ONCE):
        sizes = (spec.get("sequence_length"), spec.get("image_size"), spec.get("memory_limit_bytes"))
        kind_of_run = (*rest, *sizes, settings_key(spec))
        if kind_of_run in seen:
            continue
        seen.add(kind_of_run)
        run = Run.objects.get(pk=pk)
        for cell in cells_of(run):
            key = tuple(cell[name] for name in KEY)
            if key not in stored:
                stored.add(key)
                MatrixCell.objects.create(run_id=pk, answered_at=run.finished_at, **cell)


def cells_of(run):
    if run.result is None or run.model not in WORKLOADS:
        return []
    workload = WORKLOADS[run.model]
    shared = {
        "model": run.model,
        "input_size": run.spec.get(workload.input_field) or workload.default_input_size,
        "precision": run.spec["precision"],
        "optimizer": run.spec["optimizer"],
        "settings": settings_key(run.spec),
    }
    if run.kind == "estimate":
        is_limited = run.spec.get("memory_limit_bytes") is not None
        return [] if is_limited else [shared | estimated(estimate) for estimate in run.result["estimates"]]
    cell = measured(run.result)
    return [shared | cell] if cell else []


def settings_key(spec):
    named = [
        f"{name}={value}"
        for name, value in sorted(spec.items())
        if name not in NOT_SETTINGS and value not in (None, False, DEFAULTS.get(name))
    ]
    return " ".join(named)[:LENGTH_MAX]


def measured(result):
    device, boundary = result["device"], result["boundary"]
    limit_bytes = device.get("limit_bytes") or device["capacity_bytes"]
    is_cpu = device["kind"] == "cpu"
    is_limited = limit_bytes < device["capacity_bytes"]
    if not boundary["certified"] or device.get("is_shared") is not False or (is_limited and not is_cpu):
        return None
    largest, recommended = result["largest"] or {}, result["recommended"] or {}
    gpu = match(device["name"], device["capacity_bytes"]) if device["kind"] == "cuda" else None
    name, used_bytes = device["name"][:200], largest.get("memory_bytes")
    card = gpu.id if gpu else device["name"][:LENGTH_MAX]
    return {
        "kind": "measured",
        "card": f"{name} held to {format_bytes(limit_bytes)}" if is_cpu else card,
        "card_name": name,
        "is_cpu": is_cpu,
        "memory_bytes": limit_bytes if is_cpu else device["capacity_bytes"],
        "largest_batch_size": boundary["largest_batch_size"],
        "used_batch_size": recommended.get("batch_size"),
        "samples_per_second": recommended.get("samples_per_second"),
        "headroom_bytes": None if used_bytes is None else limit_bytes - used_bytes,
    }


def estimated(estimate):
    gpu = estimate["gpu"]
    return {
        "kind": "estimated",
        "card": gpu["id"][:LENGTH_MAX],
        "card_name": gpu["name"][:200],
        "memory_bytes": gpu["total_bytes"],
        "largest_batch_size": estimate["largest_batch_size"],
        "safe_batch_size": estimate["safe_batch_size"],
    }


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
                    models.PositiveIntegerField(help_text="Largest size within the margin of an estimate.", null=True),
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
