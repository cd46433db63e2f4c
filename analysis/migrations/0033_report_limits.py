"""A run key, and a document, is one run of each person who sends it; and the room that a live run has."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Exists, OuterRef, Subquery


def name_who_reported(apps, schema_editor):
    """Fill the new column from the runs."""
    report, run = apps.get_model("analysis", "Report"), apps.get_model("analysis", "Run")
    person = run._base_manager.filter(pk=OuterRef("run_id")).values("requested_by")
    report._base_manager.using(schema_editor.connection.alias).update(reported_by=Subquery(person))


def leave_keys_to_the_newest(apps, schema_editor):
    """Give older reports of the same key a key of their own: before, a key and a document were one report's alone.

    Each row is written once: after a second time PostgreSQL has its checks wait, and refuses to change the table.
    """
    reports = apps.get_model("analysis", "Report")._base_manager.using(schema_editor.connection.alias)
    changes = {pk: {"run_key": uuid.uuid4().hex} for pk in _older_of_same(reports, "run_key")}
    for pk in _older_of_same(reports, "document_sha256"):
        changes.setdefault(pk, {})["document_sha256"] = None
    for pk, columns in changes.items():
        reports.filter(pk=pk).update(**columns)


def _older_of_same(reports, column):
    newer = reports.filter(**{column: OuterRef(column)}, pk__gt=OuterRef("pk"))
    return list(reports.filter(Exists(newer)).values_list("pk", flat=True))


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0032_claims"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="report",
            name="probe_bytes",
            field=models.PositiveIntegerField(default=0, help_text="Bytes of the probes among the events."),
        ),
        migrations.AddField(
            model_name="report",
            name="reported_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="Empty: the account was deleted.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="run_key",
            field=models.CharField(max_length=32),
        ),
        migrations.AlterField(
            model_name="report",
            name="document_sha256",
            field=models.CharField(
                blank=True, help_text="SHA-256 of the result's bytes as received.", max_length=64, null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(fields=("reported_by", "run_key"), name="report_once_per_key"),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                fields=("reported_by", "document_sha256"), name="report_once_per_document"
            ),
        ),
        # behind the changes of the table: PostgreSQL refuses those while rows that were written wait for their checks
        migrations.RunPython(name_who_reported, leave_keys_to_the_newest),
    ]
