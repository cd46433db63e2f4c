"""An estimate may also say what to change so that a batch size fits."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0026_validations")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="what_to_change",
            field=models.CharField(
                blank=True,
                choices=[("first", "first"), ("single", "single"), ("grid", "grid")],
                default="",
                help_text="Estimates only: how many other settings are estimated too. Empty: none.",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="gpu",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Estimates only: a card of the catalogue, all, or cpu.",
                max_length=40,
            ),
        ),
    ]
