"""When a run came back, so that retention does not delete it again at once; and how long a rule can keep something."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0013_name_index")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="restored_at",
            field=models.DateTimeField(blank=True, help_text="When it was last brought back.", null=True),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Empty: for ever. Entries of the audit log: at least 365.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(36500)],
            ),
        ),
    ]
