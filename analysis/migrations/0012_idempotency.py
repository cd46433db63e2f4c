"""What the API keeps to answer a repeated request the same way, and to count how often somebody asks."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0011_audit_retention"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=255)),
                ("digest", models.CharField(help_text="SHA-256 of the address and the body.", max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idempotency_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idempotency_keys",
                        to="analysis.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once_per_owner"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=20)),
                ("who", models.CharField(max_length=64)),
                (
                    "free_at_seconds",
                    models.FloatField(help_text="When the whole allowance is free again, in seconds since 1970."),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("scope", "who"), name="throttle_once_per_scope"),
                ],
            },
        ),
    ]
