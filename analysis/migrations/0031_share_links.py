"""Links that show one run without a login, and the rule of how long they are valid at most."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def make_rule(apps, schema_editor):
    rules = apps.get_model("analysis", "RetentionRule").objects.using(schema_editor.connection.alias)
    rules.get_or_create(what="share_links", defaults={"days": 90})


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0030_news"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="retentionrule",
            name="what",
            field=models.CharField(
                choices=[
                    ("deleted_runs", "Deleted runs, with their measurements: removed permanently"),
                    (
                        "log_lines",
                        "Log lines of runs that are over: removed, except beginning, end, warnings and errors",
                    ),
                    ("old_runs", "Runs that are over: deleted, but can be restored until they are removed permanently"),
                    ("audit_entries", "Entries of the audit log"),
                    ("idempotency_keys", "Idempotency keys of API requests"),
                    ("news", "News of runs and devices, with the log of their deliveries"),
                    ("share_links", "Links that show a run without a login: no link is valid for longer"),
                ],
                max_length=20,
                unique=True,
            ),
        ),
        migrations.CreateModel(
            name="ShareLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "prefix",
                    models.CharField(help_text="First characters of the secret, to distinguish links.", max_length=12),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "ends_at",
                    models.DateTimeField(blank=True, help_text="Empty: valid until it is withdrawn.", null=True),
                ),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="share_links",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="share_links", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-id"),
            },
        ),
        migrations.RunPython(make_rule, migrations.RunPython.noop),
    ]
