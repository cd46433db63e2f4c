"""What a run's page said when its result was stored."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0003_readable_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="decided_by",
            field=models.CharField(
                blank=True, default="", editable=False, help_text="The version whose rules said it.", max_length=40
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="printed_headline",
            field=models.TextField(
                blank=True, default="", editable=False, help_text="What its page said when the result was stored."
            ),
        ),
    ]
