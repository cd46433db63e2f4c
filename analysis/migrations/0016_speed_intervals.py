"""The interval of a run's speed-up and of its yearly saving. Runs of before have none: it is not known."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0015_probe_conditions"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="speedup_low",
            field=models.FloatField(blank=True, help_text="The interval of 95 %; empty: not known.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="speedup_high",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="is_speed_measurable",
            field=models.BooleanField(
                blank=True,
                help_text="Whether speeds could be compared; empty: of before 0.5, not known.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="saving_per_year_usd_low",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="saving_per_year_usd_high",
            field=models.FloatField(blank=True, null=True),
        ),
    ]
