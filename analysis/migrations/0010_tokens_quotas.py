"""Tokens of the API, and quotas."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TOKEN = [
    ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
    ("name", models.CharField(help_text="What it is for.", max_length=100)),
    ("prefix", models.CharField(help_text="How the secret begins: to tell tokens apart.", max_length=12)),
    ("digest", models.CharField(editable=False, max_length=64, unique=True)),
    ("may_write", models.BooleanField(default=False, help_text="Else it only reads.")),
    ("created_at", models.DateTimeField(auto_now_add=True)),
    ("expires_at", models.DateTimeField(blank=True, help_text="Empty: until it is revoked.", null=True)),
    ("last_used_at", models.DateTimeField(blank=True, help_text="To the minute.", null=True)),
    ("revoked_at", models.DateTimeField(blank=True, null=True)),
    (
        "owner",
        models.ForeignKey(
            on_delete=django.db.models.deletion.CASCADE, related_name="api_tokens", to=settings.AUTH_USER_MODEL
        ),
    ),
]
QUOTA = [
    ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
    (
        "runs_waiting_max",
        models.PositiveIntegerField(
            blank=True, help_text="In the queue at once; estimates count.", null=True, verbose_name="runs waiting"
        ),
    ),
    (
        "runs_per_day_max",
        models.PositiveIntegerField(
            blank=True,
            help_text="Asked for in any 24 hours; estimates do not count.",
            null=True,
            verbose_name="measurements in 24 hours",
        ),
    ),
    (
        "time_budget_max_seconds",
        models.FloatField(
            blank=True,
            null=True,
            validators=[django.core.validators.MinValueValidator(1)],
            verbose_name="longest time budget, seconds",
        ),
    ),
    (
        "devices",
        models.ManyToManyField(
            blank=True,
            help_text="Only these; empty: every device that is open to her.",
            related_name="+",
            to="analysis.device",
        ),
    ),
    (
        "group",
        models.OneToOneField(
            blank=True,
            null=True,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="quota",
            to="auth.group",
        ),
    ),
    (
        "user",
        models.OneToOneField(
            blank=True,
            null=True,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="quota",
            to=settings.AUTH_USER_MODEL,
        ),
    ),
]
ONE_OF_BOTH = models.Q(("group__isnull", False), ("user__isnull", True)) | models.Q(
    ("group__isnull", True), ("user__isnull", False)
)


class Migration(migrations.Migration):
    dependencies = [("analysis", "0009_roles")]

    operations = [
        migrations.CreateModel(
            name="ApiToken",
            fields=TOKEN,
            options={"ordering": ("-created_at", "-id"), "verbose_name": "API token"},
        ),
        migrations.CreateModel(
            name="Quota",
            fields=QUOTA,
            options={
                "ordering": ("group__name", "user__username"),
                "constraints": [
                    models.CheckConstraint(
                        condition=ONE_OF_BOTH,
                        name="quota_of_a_user_or_of_a_group",
                        violation_error_message="Name a person or a group, not both.",
                    )
                ],
            },
        ),
    ]
