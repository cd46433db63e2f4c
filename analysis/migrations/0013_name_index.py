"""Runs sorted by name: those without one, newest first, are served by the index too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0012_idempotency")]

    operations = [
        migrations.RemoveIndex(model_name="run", name="run_by_name"),
        migrations.AddIndex(model_name="run", index=models.Index(fields=["name", "-created_at"], name="run_by_name")),
    ]
