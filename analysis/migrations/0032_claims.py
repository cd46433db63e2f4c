"""What is claimed of speed and money, for lists; a size by memory alone is no recommendation any more."""

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Now

AT_ONCE = 2_000


def fill(apps, schema_editor):
    """Fill the new columns, and clear what was called recommended without a comparison of speeds."""
    run, cell = apps.get_model("analysis", "Run"), apps.get_model("analysis", "MatrixCell")
    for ids in _in_chunks(run._base_manager.filter(speedup__isnull=False)):
        run._base_manager.filter(pk__in=ids).update(
            claimed_speedup=F("speedup"), claimed_saving_per_year_usd=F("saving_per_year_usd")
        )
    cell.objects.filter(kind="estimated").update(
        with_reserve_batch_size=F("recommended_batch_size"), recommended_batch_size=None
    )
    measured = run._base_manager.filter(kind="measurement", recommended_batch_size__isnull=False)
    by_memory = measured.filter(result__speed__recommended_by="memory_reserve")
    # starts in turns that show a gain were compared: their size stays
    for ids in _in_chunks(by_memory.exclude(is_speed_measurable=True, speedup_low__gt=1)):
        cells = cell.objects.filter(kind="measured", run__in=ids)
        keeping = cells.filter(headroom_bytes__gte=F("memory_bytes") * F("reserve_fraction"))
        keeping.update(with_reserve_batch_size=F("recommended_batch_size"))
        cells.update(recommended_batch_size=None, samples_per_second=None, headroom_bytes=None)
        run._base_manager.filter(pk__in=ids).update(
            **dict.fromkeys(_OF_THE_RECOMMENDED), is_speed_measurable=False, updated_at=Now()
        )


_OF_THE_RECOMMENDED = (
    *("recommended_batch_size", "recommended_samples_per_second", "recommended_memory_bytes"),
    *("speedup", "speedup_low", "speedup_high", "claimed_speedup", "cost_per_million_samples_usd"),
    *("saving_per_run_usd", "saving_per_year_usd", "saving_per_year_usd_low", "saving_per_year_usd_high"),
    "claimed_saving_per_year_usd",
)


def _in_chunks(runs):
    """Yield the numbers of runs, a few at a time: each statement stays short on SQLite and on PostgreSQL."""
    last = 0
    while ids := list(runs.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        yield ids
        last = ids[-1]


def put_back(apps, schema_editor):
    """Give the estimated cells their size back, where the version before looks for it."""
    cell = apps.get_model("analysis", "MatrixCell")
    cell.objects.filter(kind="estimated").update(recommended_batch_size=F("with_reserve_batch_size"))


class Migration(migrations.Migration):
    dependencies = [("analysis", "0031_share_links")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="claimed_speedup",
            field=models.FloatField(
                blank=True,
                help_text="The speed-up, or its lower end where only that is claimed: lists sort by it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="claimed_saving_per_year_usd",
            field=models.FloatField(
                blank=True, help_text="The saving, or its lower end where only that is claimed.", null=True
            ),
        ),
        migrations.RenameField("matrixcell", "used_batch_size", "recommended_batch_size"),
        migrations.AlterField(
            model_name="matrixcell",
            name="recommended_batch_size",
            field=models.PositiveIntegerField(
                help_text="Size that a measurement recommends by its speeds; its speed was measured at this size.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="matrixcell",
            name="with_reserve_batch_size",
            field=models.PositiveIntegerField(
                help_text="The largest size that leaves the reserve free, measured or predicted.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="headroom_bytes",
            field=models.BigIntegerField(
                help_text="Memory that the recommended size leaves free; of runs before 0.5 the largest.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="reserve_fraction",
            field=models.FloatField(
                help_text="Share of memory that the reserve is. Empty: unknown (before 0.5).", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="is_speed_measurable",
            field=models.BooleanField(
                blank=True,
                help_text="Whether figures of speed are claimed. Empty: unknown (before 0.5).",
                null=True,
            ),
        ),
        migrations.RunPython(fill, put_back),
        migrations.RemoveIndex("run", "run_by_speedup"),
        migrations.RemoveIndex("run", "run_by_saving"),
        migrations.AddIndex(
            "run",
            models.Index(
                condition=models.Q(("claimed_speedup__isnull", False)),
                fields=["claimed_speedup", "id"],
                name="run_by_speedup",
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                condition=models.Q(("claimed_saving_per_year_usd__isnull", False)),
                fields=["claimed_saving_per_year_usd", "id"],
                name="run_by_saving",
            ),
        ),
    ]
