"""The history: what people write on runs, what a list shows of them, and the indexes that keep it quick."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import OuterRef, Subquery

FILLED_AT_ONCE = 500
POINTS_MAX = 12

# what PostgreSQL would lose with the column's own index: Django drops every index of that column alone
ONE_RUNNING_RUN = models.UniqueConstraint(
    fields=("device",), condition=models.Q(state="running"), name="one_running_run_per_device"
)


# What follows repeats the portal's code as it was at this migration, on the plain JSON of a result: the code may be
# renamed and changed, and an old database is still filled as it was then.


def history_columns(result):
    """Read the columns that lists show out of a measured result."""
    speed = (result["recommended"] or {}).get("samples_per_second")
    price_per_hour_usd = result["savings"]["price_per_hour_usd"]
    return {
        "limit_bytes": result["waste"]["capacity_bytes"],
        "memory_curve": memory_points(result["probes"]),
        "cost_per_million_samples_usd": price_per_hour_usd / (speed * 3_600) * 1_000_000 if speed else None,
    }


def memory_points(probes):
    """Pair batch size and bytes of the probes that fitted, thinned to POINTS_MAX with both ends kept."""
    chosen = {}
    for probe in probes:
        earlier = chosen.get(probe["batch_size"])
        had_fitted = earlier is not None and earlier["outcome"] == "fits"
        fits = probe["outcome"] == "fits"
        is_untimed_repeat = fits and probe.get("step_seconds") is None
        is_spoiled = not fits and not probe.get("fresh_process")
        if not (had_fitted and (is_untimed_repeat or is_spoiled)):
            chosen[probe["batch_size"]] = probe
    held = [[size, memory_bytes(p)] for size, p in sorted(chosen.items()) if p["outcome"] == "fits"]
    known = [point for point in held if point[1] is not None]
    if len(known) <= POINTS_MAX:
        return known
    step = (len(known) - 1) / (POINTS_MAX - 1)
    return [known[round(place * step)] for place in range(POINTS_MAX)]


def memory_bytes(probe):
    reserved = probe.get("peak_reserved_bytes")
    return probe.get("peak_allocated_bytes") if reserved is None else reserved


def fill(apps, schema_editor):
    """Fill the new columns of runs that ended before: what lists show of them is in their results."""
    Run, Device = (apps.get_model("analysis", name) for name in ("Run", "Device"))
    name = Device.objects.filter(pk=OuterRef("device")).values("name")
    Run.objects.filter(device_name="", device__isnull=False).exclude(state="queued").update(device_name=Subquery(name))
    measured = Run.objects.filter(kind="measurement", result__isnull=False).only("result").order_by("pk")
    filled = []
    for run in measured.iterator(FILLED_AT_ONCE):
        columns = history_columns(run.result)
        for name, value in columns.items():
            setattr(run, name, value)
        filled.append(run)
        if len(filled) == FILLED_AT_ONCE:
            Run.objects.bulk_update(filled, columns)
            filled = []
    if filled:
        Run.objects.bulk_update(filled, columns)


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0005_estimates"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9._:/+-]*\\Z",
                                "A tag has small letters, digits and . _ : / + - and begins with a letter or digit.",
                            )
                        ],
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.AddField(
            model_name="run",
            name="cost_per_million_samples_usd",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="deleted_at",
            field=models.DateTimeField(blank=True, help_text="Out of every list; can be restored.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="is_baseline",
            field=models.BooleanField(default=False, help_text="Pinned: others are compared with it; it is kept."),
        ),
        migrations.AddField(
            model_name="run",
            name="limit_bytes",
            field=models.BigIntegerField(blank=True, help_text="What it was allowed of the device.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="memory_curve",
            field=models.JSONField(blank=True, help_text="Batch sizes and bytes, few: for lists.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="name",
            field=models.CharField(blank=True, default="", max_length=120),
        ),
        migrations.AddField(
            model_name="run",
            name="note",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.RemoveConstraint(model_name="run", name=ONE_RUNNING_RUN.name),
        migrations.AlterField(
            model_name="run",
            name="device",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="analysis.device",
            ),
        ),
        migrations.AddConstraint(model_name="run", constraint=ONE_RUNNING_RUN),
        migrations.AlterField(
            model_name="run",
            name="requested_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="RunWord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("word", models.CharField(max_length=40)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="words",
                        to="analysis.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("query", models.CharField(blank=True, max_length=2000)),
                ("is_shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "id"),
            },
        ),
        migrations.AddField(
            model_name="run",
            name="tags",
            field=models.ManyToManyField(blank=True, related_name="runs", to="analysis.tag"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device_name", "-created_at"], name="run_by_gpu"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["kind", "-created_at"], name="run_by_kind"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["precision", "-created_at"], name="run_by_precision"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["optimizer", "-created_at"], name="run_by_optimizer"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["requested_by", "-created_at"], name="run_of_person"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device", "-created_at"], name="run_on_device"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("largest_batch_size__isnull", False)),
                fields=["largest_batch_size", "id"],
                name="run_by_largest",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_batch_size__isnull", False)),
                fields=["recommended_batch_size", "id"],
                name="run_by_recommended",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("speedup__isnull", False)), fields=["speedup", "id"], name="run_by_speedup"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_samples_per_second__isnull", False)),
                fields=["recommended_samples_per_second", "id"],
                name="run_by_samples",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_memory_bytes__isnull", False)),
                fields=["recommended_memory_bytes", "id"],
                name="run_by_memory",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("saving_per_year_usd__isnull", False)),
                fields=["saving_per_year_usd", "id"],
                name="run_by_saving",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("cost_per_million_samples_usd__isnull", False)),
                fields=["cost_per_million_samples_usd", "id"],
                name="run_by_cost",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["name", "id"], name="run_by_name"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("is_baseline", True)), fields=["-created_at"], name="run_baselines"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("is_shared", True)), fields=["-created_at"], name="run_shared"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="run_deleted"
            ),
        ),
        migrations.AddIndex(
            model_name="runword",
            index=models.Index(
                fields=["word", "run"], name="word_by_beginning", opclasses=("varchar_pattern_ops", "int8_ops")
            ),
        ),
        migrations.AddConstraint(
            model_name="runword",
            constraint=models.UniqueConstraint(fields=("run", "word"), name="word_once_per_run"),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="saved_view_once_per_name"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
