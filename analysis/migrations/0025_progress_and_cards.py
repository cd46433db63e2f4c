"""The progress of an attempt, for the live page; and how many cards an estimate for all of them found, for lists."""

from django.db import migrations, models


def fill(apps, schema_editor):
    """Count the cards of each estimate for all cards; those left out are in its log alone."""
    run, log = apps.get_model("analysis", "Run"), apps.get_model("analysis", "RunLog")
    finished = run._base_manager.filter(kind="estimate", gpu="all", state="finished", result__isnull=False)
    for pk, result, size in finished.values_list("pk", "result", "current_batch_size").iterator(20):
        estimates = result.get("estimates") or []
        left_out = log.objects.filter(run=pk, message__startswith="left out: ").count()
        safe = sum((estimate.get("safe_batch_size") or 0) >= (size or 1) for estimate in estimates)
        run._base_manager.filter(pk=pk).update(estimated_cards=len(estimates) + left_out, estimated_cards_that_fit=safe)


class Migration(migrations.Migration):
    dependencies = [("analysis", "0024_run_settings")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="progress",
            field=models.JSONField(
                blank=True,
                help_text="What the engine does now, for the live page: see `analysis.runs.progress`.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="estimated_cards",
            field=models.PositiveIntegerField(
                blank=True, help_text="Cards of an estimate for all cards of the catalogue.", null=True
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="estimated_cards_that_fit",
            field=models.PositiveIntegerField(
                blank=True, help_text="How many of them take today's batch size with the margin.", null=True
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
