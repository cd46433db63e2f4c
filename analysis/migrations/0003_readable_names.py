"""The names of four fields as people read them; no table changes."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0002_text_index"),
    ]

    operations = [
        migrations.AlterField(
            model_name="device",
            name="is_reported",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Named by a reported run alone: no worker, takes no runs.",
                verbose_name="reported",
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="price_per_hour_usd",
            field=models.FloatField(
                blank=True,
                help_text="Used for the cost and savings of new runs.",
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
                verbose_name="price per hour, US$",
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="uuid",
            field=models.CharField(blank=True, default="", max_length=100, verbose_name="UUID"),
        ),
        migrations.AlterField(
            model_name="run",
            name="is_baseline",
            field=models.BooleanField(
                default=False,
                help_text="Pinned: other runs are compared with it, and it is never deleted automatically.",
                verbose_name="baseline",
            ),
        ),
    ]
