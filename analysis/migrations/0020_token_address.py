"""Where a token was last used, and an index for what changed since some moment."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0019_standard_terms")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="last_used_address",
            field=models.GenericIPAddressField(
                blank=True, help_text="Where that use came from, as far as it can be believed.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["-updated_at"], name="run_by_update"),
        ),
    ]
