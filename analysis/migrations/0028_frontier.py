"""An estimate may also be for several lengths or image sizes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0027_what_to_change")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="frontier",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Estimates only: lengths or image sizes that are estimated too, in order.",
            ),
        ),
    ]
