"""What a probe keeps of its surroundings: memory held beside it, and how the machine ran while it was timed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0014_restored_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="measurement",
            name="beside_bytes",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="measurement",
            name="timing_conditions",
            field=models.JSONField(null=True),
        ),
    ]
