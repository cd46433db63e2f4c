"""The audit log, and the rules of retention with the days that hold until somebody says otherwise."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

DAYS = {"deleted_runs": 30, "log_lines": 90, "old_runs": None, "audit_entries": None, "idempotency_keys": 1}
WHAT = [
    ("deleted_runs", "Deleted runs, with all that was measured in them"),
    ("log_lines", "Log lines of runs that are over: beginning, end, warnings and errors stay"),
    ("old_runs", "Runs that are over: deleted, and can be restored as long as deleted runs are kept"),
    ("audit_entries", "Entries of the audit log"),
    ("idempotency_keys", "Keys of requests that the API would answer again the same way"),
]


def make_rules(apps, schema_editor):
    rules = apps.get_model("analysis", "RetentionRule").objects.using(schema_editor.connection.alias)
    for what, days in DAYS.items():
        rules.get_or_create(what=what, defaults={"days": days})


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0010_tokens_quotas"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("what", models.CharField(choices=WHAT, max_length=20, unique=True)),
                ("days", models.PositiveIntegerField(blank=True, help_text="Empty: for ever.", null=True)),
                (
                    "applied_at",
                    models.DateTimeField(blank=True, editable=False, help_text="When it was last seen to.", null=True),
                ),
                (
                    "reached_at",
                    models.DateTimeField(
                        blank=True, editable=False, help_text="How far the logs are thinned.", null=True
                    ),
                ),
            ],
            options={"ordering": ("what",)},
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("actor_name", models.CharField(blank=True, default="", max_length=150)),
                ("action", models.CharField(max_length=40)),
                ("target_kind", models.CharField(max_length=40)),
                ("target_id", models.CharField(blank=True, default="", max_length=64)),
                ("target_text", models.CharField(blank=True, default="", max_length=200)),
                ("before", models.JSONField(blank=True, null=True)),
                ("after", models.JSONField(blank=True, null=True)),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("remote_address", models.GenericIPAddressField(blank=True, null=True)),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit log",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["actor", "-id"], name="audit_by_actor"),
                    models.Index(fields=["action", "-id"], name="audit_by_action"),
                    models.Index(fields=["target_kind", "-id"], name="audit_by_kind"),
                    models.Index(fields=["target_kind", "target_id", "-id"], name="audit_by_target"),
                    models.Index(fields=["request_id"], name="audit_by_request"),
                    models.Index(fields=["recorded_at"], name="audit_by_time"),
                ],
            },
        ),
        migrations.RunPython(make_rules, migrations.RunPython.noop),
    ]
