"""A size that is no faster than today's is no recommendation, in the columns of earlier runs either."""

from django.db import migrations
from django.db.models import F, Q
from django.db.models.functions import Now

AT_ONCE = 2_000
NO_GAIN = Q(speedup__lt=1.03) | Q(speedup_low__lte=1)
"""As `engine.speed.claim.is_gain` has it."""


def clear(apps, schema_editor):
    """Clear what was recommended, and the speed-up and the money of it, where the speed-up is none."""
    run, cell = apps.get_model("analysis", "Run"), apps.get_model("analysis", "MatrixCell")
    compared = run._base_manager.filter(recommended_batch_size__isnull=False, speedup__isnull=False)
    for ids in _in_chunks(compared.filter(NO_GAIN).exclude(recommended_batch_size=F("current_batch_size"))):
        cells = cell.objects.filter(kind="measured", run__in=ids)
        cells.exclude(reserve_fraction=None).update(headroom_bytes=None)  # before 0.5 it is that of the largest
        cells.update(recommended_batch_size=None, samples_per_second=None)
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


class Migration(migrations.Migration):
    dependencies = [("analysis", "0036_kind_of_command")]

    operations = [migrations.RunPython(clear, migrations.RunPython.noop)]
