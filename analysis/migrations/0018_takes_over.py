"""A run that starts with the probes of another one, to time again without searching again."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0017_matrix_reserve"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="takes_over",
            field=models.ForeignKey(
                blank=True,
                help_text="Whose probes it starts with.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="analysis.run",
            ),
        ),
    ]
