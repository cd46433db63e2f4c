"""News: an outbox of events, people's subscriptions, deliveries with their log, and allowed hosts."""

import uuid

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def make_rule(apps, schema_editor):
    apps.get_model("analysis", "RetentionRule")._base_manager.get_or_create(what="news", defaults={"days": 30})


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0029_reported_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AllowedHost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "host",
                    models.CharField(
                        help_text="Host name or address as in the URL, in lower case, without port: "
                        "chat.lab.internal, 10.1.2.3.",
                        max_length=253,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9._:-]+\\Z", "Lower-case host name or address, without port and brackets."
                            )
                        ],
                    ),
                ),
                ("note", models.CharField(blank=True, default="", max_length=200)),
                ("added_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ("host",),
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("delivery_id", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("given_up", "Given up")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("body", models.JSONField(help_text="What is sent, written once: every attempt sends the same.")),
                ("attempts_made", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ("-id",),
            },
        ),
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
                ],
                max_length=20,
                unique=True,
            ),
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("is_delivered", models.BooleanField()),
                ("status", models.PositiveIntegerField(blank=True, null=True)),
                ("seconds", models.FloatField()),
                ("reason", models.CharField(blank=True, default="", max_length=300)),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attempts", to="analysis.delivery"
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="NewsEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("run.finished", "A run finished"),
                            ("run.failed", "A run failed"),
                            ("run.cancelled", "A run was cancelled"),
                            ("run.interrupted", "A run was interrupted"),
                            ("estimate.contradicted", "A measurement contradicts its estimate"),
                            ("trend.step", "A trend stepped"),
                            ("device.silent", "A device went silent"),
                            ("subscription.disabled", "A subscription was disabled"),
                            ("test", "A test"),
                        ],
                        max_length=24,
                    ),
                ),
                ("key", models.CharField(max_length=120, unique=True)),
                ("details", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dispatched_at",
                    models.DateTimeField(
                        blank=True, help_text="When its deliveries were stored. Empty: not yet.", null=True
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="analysis.device",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="analysis.run",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.AddField(
            model_name="delivery",
            name="event",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="analysis.newsevent"
            ),
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("webhook", "Webhook, signed JSON"),
                            ("slack", "Slack or compatible"),
                            ("email", "E-mail to your address"),
                        ],
                        max_length=10,
                    ),
                ),
                ("url", models.CharField(blank=True, default="", max_length=500)),
                ("kinds", models.JSONField(default=list, help_text="The chosen kinds of news.")),
                (
                    "scope",
                    models.CharField(
                        choices=[("mine", "My runs"), ("view", "The runs of a saved view")],
                        default="mine",
                        max_length=4,
                    ),
                ),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("generation", models.PositiveIntegerField(default=1, editable=False)),
                ("rotated_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "failing_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the first attempt failed since the last delivery. Empty: none did.",
                        null=True,
                    ),
                ),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
                ("disabled_because", models.CharField(blank=True, default="", max_length=300)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "view",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="subscriptions",
                        to="analysis.savedview",
                    ),
                ),
            ],
            options={
                "ordering": ("name", "id"),
            },
        ),
        migrations.AddField(
            model_name="delivery",
            name="subscription",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="analysis.subscription"
            ),
        ),
        migrations.AddIndex(
            model_name="newsevent",
            index=models.Index(condition=models.Q(("dispatched_at", None)), fields=["id"], name="news_waiting"),
        ),
        migrations.AddIndex(
            model_name="newsevent",
            index=models.Index(fields=["created_at"], name="news_by_age"),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="subscription_once_per_name"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(condition=models.Q(("state", "waiting")), fields=["due_at"], name="delivery_due"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(fields=("event", "subscription"), name="delivery_once_per_subscription"),
        ),
        migrations.RunPython(make_rule, migrations.RunPython.noop),
    ]
