"""All tables of the portal, in one: no release came before it."""

import uuid

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

REPLACED = (
    "0001_initial",
    "0002_fleet",
    "0003_take_over",
    "0004_host_required",
    "0005_estimates",
    "0006_history",
    "0007_trend",
    "0008_matrix",
    "0009_roles",
    "0010_tokens_quotas",
    "0011_audit_retention",
    "0012_idempotency",
    "0013_name_index",
    "0014_restored_at",
    "0015_probe_conditions",
    "0016_speed_intervals",
    "0017_matrix_reserve",
    "0018_takes_over",
    "0019_standard_terms",
    "0020_token_address",
    "0022_help_texts",
    "0023_cpu_cards",
    "0024_run_settings",
    "0025_progress_and_cards",
    "0026_validations",
    "0027_what_to_change",
    "0028_frontier",
    "0029_reported_runs",
    "0030_news",
    "0031_share_links",
    "0032_claims",
    "0033_report_limits",
    "0034_secrets",
    "0035_device_holder",
    "0036_kind_of_command",
    "0037_no_gain",
    "0038_estimate_spec",
    "0039_kind_of_race",
    "0040_device_sets",
    "0041_kind_of_own_race",
    "0042_device_days",
    "0043_device_busy",
    "0044_run_on_device_by_state",
    "0045_device_busy_now",
)
"""What a database of 0.5 has applied. It is what `migrate` makes of this one, and is taken for it."""


class Migration(migrations.Migration):
    initial = True
    replaces = [("analysis", name) for name in REPLACED]

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
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
                        help_text="As in the URL, in lower case, with its port: chat.lab.internal:8443. Without one: 443, of http 80.",
                        max_length=253,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^((\\[[0-9a-f:.]+\\]|[a-z0-9._-]+)(:(6553[0-5]|655[0-2]\\d|65[0-4]\\d{2}|6[0-4]\\d{3}|[1-5]\\d{4}|[1-9]\\d{0,3}))?|[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*)\\Z",
                                "A host or address in lower case, with :port unless 443 or 80.",
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
        migrations.CreateModel(
            name="Host",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "drained",
                    models.BooleanField(default=False, help_text="Takes no new runs; a running run is left to end."),
                ),
                ("maintenance_from", models.DateTimeField(blank=True, null=True)),
                (
                    "maintenance_until",
                    models.DateTimeField(
                        blank=True, help_text="End of maintenance. Empty: until further notice.", null=True
                    ),
                ),
                ("maintenance_note", models.CharField(blank=True, default="", max_length=200)),
                ("name", models.CharField(max_length=200, unique=True)),
                ("registered_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("deleted_runs", "Deleted runs, with their measurements: removed permanently"),
                            (
                                "log_lines",
                                "Log lines of runs that are over: removed, except beginning, end, warnings and errors",
                            ),
                            (
                                "old_runs",
                                "Runs that are over: deleted, but can be restored until they are removed permanently",
                            ),
                            ("audit_entries", "Entries of the audit log"),
                            ("idempotency_keys", "Idempotency keys of API requests"),
                            ("news", "News of runs and devices, with the log of their deliveries"),
                            ("share_links", "Links that show a run without a login: no link is valid for longer"),
                        ],
                        max_length=20,
                        unique=True,
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Days after which this is done. Empty: never. Entries of the audit log: at least 365.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(36500)],
                    ),
                ),
                (
                    "applied_at",
                    models.DateTimeField(
                        blank=True, editable=False, help_text="When the rule was last applied.", null=True
                    ),
                ),
                (
                    "reached_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="Logs of runs that ended before this are trimmed.",
                        null=True,
                    ),
                ),
            ],
            options={
                "ordering": ("what",),
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "restored_at",
                    models.DateTimeField(blank=True, help_text="When the run was last restored.", null=True),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("measurement", "Measurement"),
                            ("command", "Command"),
                            ("estimate", "Estimate"),
                            ("validation", "Validation"),
                            ("race", "Race"),
                            ("own_race", "Own race"),
                        ],
                        default="measurement",
                        max_length=12,
                    ),
                ),
                (
                    "gpu",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="What was estimated, here or before measuring: a card of the catalogue, all, or cpu.",
                        max_length=40,
                    ),
                ),
                ("model", models.CharField(max_length=40)),
                ("requested_kind", models.CharField(blank=True, default="", max_length=10)),
                (
                    "requested_device_class",
                    models.CharField(
                        blank=True, default="", help_text="Requested card: part of its name.", max_length=100
                    ),
                ),
                (
                    "uses_device_price",
                    models.BooleanField(
                        default=True, help_text="Whether the device's price replaces the price of the spec."
                    ),
                ),
                (
                    "device_count",
                    models.PositiveSmallIntegerField(
                        default=1, help_text="Devices of one host that it needs together."
                    ),
                ),
                ("needs_bytes", models.BigIntegerField(blank=True, help_text="Requested memory limit.", null=True)),
                ("needs_compute_capability", models.FloatField(blank=True, null=True)),
                ("accepts_shared_device", models.BooleanField(default=False)),
                ("priority", models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], default=0)),
                ("spec", models.JSONField()),
                ("precision", models.CharField(max_length=10)),
                ("optimizer", models.CharField(max_length=20)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="queued",
                        max_length=12,
                    ),
                ),
                ("phase", models.CharField(blank=True, default="", max_length=20)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("token", models.CharField(blank=True, default="", max_length=32)),
                ("owner", models.CharField(blank=True, default="", max_length=250)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                (
                    "suspect_at",
                    models.DateTimeField(
                        blank=True, help_text="When the heartbeat was first found missing.", null=True
                    ),
                ),
                ("cancel_requested", models.BooleanField(default=False)),
                ("error_code", models.CharField(blank=True, default="", max_length=40)),
                ("error_message", models.TextField(blank=True, default="")),
                (
                    "exit_status",
                    models.IntegerField(
                        blank=True,
                        help_text="Exit status of the engine; negative: the signal that ended it.",
                        null=True,
                    ),
                ),
                ("result", models.JSONField(blank=True, null=True)),
                ("device_name", models.CharField(blank=True, default="", max_length=200)),
                ("capacity_bytes", models.BigIntegerField(blank=True, null=True)),
                ("largest_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("certified", models.BooleanField(blank=True, null=True)),
                ("boundary_reason", models.CharField(blank=True, default="", max_length=20)),
                (
                    "verdict",
                    models.CharField(
                        blank=True, default="", help_text="Validations only: passed, warning or failed.", max_length=12
                    ),
                ),
                ("recommended_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("recommended_samples_per_second", models.FloatField(blank=True, null=True)),
                ("recommended_memory_bytes", models.BigIntegerField(blank=True, null=True)),
                ("current_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("current_waste_bytes", models.BigIntegerField(blank=True, null=True)),
                ("speedup", models.FloatField(blank=True, null=True)),
                (
                    "speedup_low",
                    models.FloatField(
                        blank=True, help_text="Lower end of the 95 % interval. Empty: unknown.", null=True
                    ),
                ),
                ("speedup_high", models.FloatField(blank=True, null=True)),
                (
                    "is_speed_measurable",
                    models.BooleanField(
                        blank=True,
                        help_text="Whether figures of speed are claimed. Empty: unknown (before 0.5).",
                        null=True,
                    ),
                ),
                (
                    "claimed_speedup",
                    models.FloatField(
                        blank=True,
                        help_text="The speed-up, or its lower end where only that is claimed: lists sort by it.",
                        null=True,
                    ),
                ),
                ("saving_per_run_usd", models.FloatField(blank=True, null=True)),
                ("saving_per_year_usd", models.FloatField(blank=True, null=True)),
                ("saving_per_year_usd_low", models.FloatField(blank=True, null=True)),
                ("saving_per_year_usd_high", models.FloatField(blank=True, null=True)),
                (
                    "claimed_saving_per_year_usd",
                    models.FloatField(
                        blank=True, help_text="The saving, or its lower end where only that is claimed.", null=True
                    ),
                ),
                ("is_shared", models.BooleanField(blank=True, null=True)),
                ("estimated_largest_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                ("estimated_safe_batch_size", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "estimated_cards",
                    models.PositiveIntegerField(
                        blank=True, help_text="Cards of an estimate for all cards of the catalogue.", null=True
                    ),
                ),
                (
                    "estimated_cards_that_fit",
                    models.PositiveIntegerField(
                        blank=True, help_text="How many of them take today's batch size with the margin.", null=True
                    ),
                ),
                ("estimate_is_calibrated", models.BooleanField(blank=True, null=True)),
                ("estimate_peak_error", models.FloatField(blank=True, null=True)),
                ("estimate_boundary_error", models.FloatField(blank=True, null=True)),
                (
                    "limit_bytes",
                    models.BigIntegerField(blank=True, help_text="Memory limit of the run on its device.", null=True),
                ),
                (
                    "memory_curve",
                    models.JSONField(
                        blank=True, help_text="A few batch sizes with their bytes, for the curve in lists.", null=True
                    ),
                ),
                ("cost_per_million_samples_usd", models.FloatField(blank=True, null=True)),
                (
                    "reported_from",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Host of the sender that reported the run. Empty: run here.",
                        max_length=200,
                    ),
                ),
                (
                    "is_trusted",
                    models.BooleanField(
                        default=True,
                        help_text="Whether the figures count for recommendations, baselines, the matrix and reuse.",
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=120)),
                ("note", models.TextField(blank=True, default="")),
                (
                    "is_baseline",
                    models.BooleanField(
                        default=False,
                        help_text="Pinned: other runs are compared with it, and it is never deleted automatically.",
                    ),
                ),
                (
                    "deleted_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the run was deleted. It is in no list and can be restored.",
                        null=True,
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-id"),
                "permissions": (("manage_portal", "May change what is everybody's, and other people's runs"),),
            },
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9._:/+-]*\\Z",
                                "A tag has lower-case letters, digits and . _ : / + - and begins with a letter or digit.",
                            )
                        ],
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="Purpose of the token.", max_length=100)),
                (
                    "prefix",
                    models.CharField(help_text="First characters of the secret, to distinguish tokens.", max_length=12),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("may_write", models.BooleanField(default=False, help_text="Whether the token may also change data.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "expires_at",
                    models.DateTimeField(blank=True, help_text="Empty: valid until it is revoked.", null=True),
                ),
                ("last_used_at", models.DateTimeField(blank=True, help_text="Last use, to the minute.", null=True)),
                (
                    "last_used_address",
                    models.GenericIPAddressField(
                        blank=True, help_text="Client address of the last use, as far as it can be trusted.", null=True
                    ),
                ),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "ordering": ("-created_at", "-id"),
            },
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
            name="Device",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "drained",
                    models.BooleanField(default=False, help_text="Takes no new runs; a running run is left to end."),
                ),
                ("maintenance_from", models.DateTimeField(blank=True, null=True)),
                (
                    "maintenance_until",
                    models.DateTimeField(
                        blank=True, help_text="End of maintenance. Empty: until further notice.", null=True
                    ),
                ),
                ("maintenance_note", models.CharField(blank=True, default="", max_length=200)),
                (
                    "device",
                    models.CharField(
                        help_text="The engine's name of the device: cuda:0, xpu:0, mps:0, cpu.", max_length=20
                    ),
                ),
                ("kind", models.CharField(max_length=10)),
                ("name", models.CharField(max_length=200)),
                ("uuid", models.CharField(blank=True, default="", max_length=100)),
                ("capacity_bytes", models.BigIntegerField()),
                ("driver", models.CharField(blank=True, default="", max_length=100)),
                ("compute_capability", models.CharField(blank=True, default="", max_length=20)),
                (
                    "price_per_hour_usd",
                    models.FloatField(
                        blank=True,
                        help_text="Used for the cost and savings of new runs.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                ("enabled", models.BooleanField(default=True, help_text="Only enabled devices take new runs.")),
                (
                    "last_seen_at",
                    models.DateTimeField(blank=True, help_text="When its worker last gave a sign of life.", null=True),
                ),
                ("memory_used_bytes", models.BigIntegerField(blank=True, null=True)),
                ("memory_read_at", models.DateTimeField(blank=True, null=True)),
                (
                    "busy_percent",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        editable=False,
                        help_text="How busy any program kept the GPU, read with its memory.",
                        null=True,
                    ),
                ),
                (
                    "foreign_used_bytes",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Memory that other processes held when a worker last tried to start a run.",
                        null=True,
                    ),
                ),
                (
                    "held_process",
                    models.CharField(
                        blank=True,
                        default="",
                        editable=False,
                        help_text="The process that holds the device for no run of this portal. Empty: none.",
                        max_length=100,
                    ),
                ),
                ("held_work", models.CharField(blank=True, default="", editable=False, max_length=200)),
                ("held_since", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "calibration",
                    models.JSONField(
                        blank=True, help_text="The card's own constants, measured by `manage.py calibrate`.", null=True
                    ),
                ),
                ("calibrated_at", models.DateTimeField(blank=True, null=True)),
                (
                    "is_reported",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="Named by a reported run alone: no worker, takes no runs.",
                    ),
                ),
                ("allowed_groups", models.ManyToManyField(blank=True, related_name="+", to="auth.group")),
                (
                    "allowed_users",
                    models.ManyToManyField(
                        blank=True,
                        help_text="People who may use the device. Empty, and no group: everybody.",
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="devices", to="analysis.host"
                    ),
                ),
            ],
            options={
                "ordering": ("host__name", "device"),
            },
        ),
        migrations.CreateModel(
            name="GpuPrice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("gpu", models.CharField(max_length=40, unique=True, verbose_name="card")),
                (
                    "price_per_hour_usd",
                    models.FloatField(
                        validators=[django.core.validators.MinValueValidator(0)], verbose_name="price per hour, US$"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        help_text="Source of the price: an offer, an invoice, a price list.", max_length=200
                    ),
                ),
                ("valid_from", models.DateField(help_text="Date of the source.", verbose_name="date")),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "updated_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "GPU price",
                "ordering": ("gpu",),
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
            name="RunText",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="text",
                        serialize=False,
                        to="analysis.run",
                    ),
                ),
                ("words", models.TextField()),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="device",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="analysis.device",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="requested_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="requested_device",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs_requesting",
                to="analysis.device",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="takes_over",
            field=models.ForeignKey(
                blank=True,
                help_text="The run whose probes this run starts with.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="analysis.run",
            ),
        ),
        migrations.AddField(
            model_name="newsevent",
            name="run",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="analysis.run"
            ),
        ),
        migrations.CreateModel(
            name="Measurement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("sequence", models.PositiveIntegerField()),
                ("recorded_at", models.DateTimeField(auto_now_add=True)),
                (
                    "is_carried",
                    models.BooleanField(
                        default=False, help_text="Whether the probe was carried over from an earlier attempt."
                    ),
                ),
                ("batch_size", models.PositiveIntegerField()),
                ("outcome", models.CharField(max_length=20)),
                ("purpose", models.CharField(max_length=20)),
                ("fresh_process", models.BooleanField(default=False)),
                ("steps", models.PositiveIntegerField(default=0)),
                ("peak_allocated_bytes", models.BigIntegerField(null=True)),
                ("peak_reserved_bytes", models.BigIntegerField(null=True)),
                ("device_used_bytes", models.BigIntegerField(null=True)),
                ("beside_bytes", models.BigIntegerField(null=True)),
                ("allocator_retries", models.PositiveIntegerField(null=True)),
                ("peak_phase", models.CharField(blank=True, default="", max_length=40)),
                ("memory_by_kind", models.JSONField(null=True)),
                ("step_seconds", models.FloatField(null=True)),
                ("timed_step_seconds", models.JSONField(default=list)),
                ("timing_is_steady", models.BooleanField(null=True)),
                ("timing_conditions", models.JSONField(null=True)),
                ("samples_per_second", models.FloatField(null=True)),
                ("error_type", models.CharField(blank=True, default="", max_length=200)),
                ("error_message", models.TextField(blank=True, default="")),
                ("failed_phase", models.CharField(blank=True, default="", max_length=40)),
                ("wall_seconds", models.FloatField(default=0.0)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="measurements", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "attempt", "sequence"),
            },
        ),
        migrations.CreateModel(
            name="MatrixCell",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("answered_at", models.DateTimeField(help_text="When the run finished.")),
                ("kind", models.CharField(max_length=10)),
                ("card", models.CharField(max_length=250)),
                (
                    "card_name",
                    models.CharField(help_text="Name in the catalogue, or the device's own.", max_length=200),
                ),
                ("is_cpu", models.BooleanField(default=False)),
                ("memory_bytes", models.BigIntegerField(help_text="Memory of the card; of a CPU, its memory limit.")),
                ("model", models.CharField(max_length=40)),
                ("input_size", models.PositiveIntegerField()),
                ("precision", models.CharField(max_length=10)),
                ("optimizer", models.CharField(max_length=20)),
                (
                    "settings",
                    models.CharField(
                        blank=True, help_text="Other settings that differ from their defaults.", max_length=250
                    ),
                ),
                ("largest_batch_size", models.PositiveIntegerField(help_text="0: not even batch size 1 fits.")),
                (
                    "safe_batch_size",
                    models.PositiveIntegerField(
                        help_text="Estimates only: the largest size within the margin of error.", null=True
                    ),
                ),
                (
                    "recommended_batch_size",
                    models.PositiveIntegerField(
                        help_text="Size that a measurement recommends by its speeds; its speed was measured at this size.",
                        null=True,
                    ),
                ),
                (
                    "with_reserve_batch_size",
                    models.PositiveIntegerField(
                        help_text="The largest size that leaves the reserve free, measured or predicted.", null=True
                    ),
                ),
                (
                    "reserve_fraction",
                    models.FloatField(
                        help_text="Share of memory that the reserve is. Empty: unknown (before 0.5).", null=True
                    ),
                ),
                ("samples_per_second", models.FloatField(null=True)),
                (
                    "headroom_bytes",
                    models.BigIntegerField(
                        help_text="Memory that the recommended size leaves free; of runs before 0.5 the largest.",
                        null=True,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="matrix_cells", to="analysis.run"
                    ),
                ),
            ],
        ),
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
        ),
        migrations.AddField(
            model_name="device",
            name="held_for",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="The running run of several devices that holds this one with others.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="held_devices",
                to="analysis.run",
            ),
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "devices",
                    models.JSONField(blank=True, help_text="Names of its devices, where it had several.", null=True),
                ),
                ("owner", models.CharField(max_length=250)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="",
                        max_length=12,
                    ),
                ),
                (
                    "cause",
                    models.CharField(
                        blank=True, default="", help_text="Why the attempt gave no result.", max_length=40
                    ),
                ),
                (
                    "counted",
                    models.BooleanField(
                        default=True, help_text="Whether the attempt counts towards the limit of attempts."
                    ),
                ),
                ("message", models.TextField(blank=True, default="")),
                ("exit_status", models.IntegerField(blank=True, null=True)),
                ("environment", models.JSONField(blank=True, null=True)),
                (
                    "progress",
                    models.JSONField(blank=True, help_text="What the engine does now, for the live page.", null=True),
                ),
                (
                    "device",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="analysis.device",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attempts", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "number"),
            },
        ),
        migrations.CreateModel(
            name="RunLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("sequence", models.PositiveIntegerField()),
                ("recorded_at", models.DateTimeField(auto_now_add=True)),
                (
                    "level",
                    models.CharField(
                        choices=[("info", "Info"), ("warning", "Warning"), ("error", "Error")],
                        default="info",
                        max_length=10,
                    ),
                ),
                ("message", models.CharField(max_length=2000)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="log_lines", to="analysis.run"
                    ),
                ),
            ],
            options={
                "ordering": ("run", "attempt", "sequence"),
            },
        ),
        migrations.CreateModel(
            name="RunSetting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("setting", models.CharField(max_length=60)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="setting_rows",
                        to="analysis.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("query", models.CharField(blank=True, max_length=2000)),
                ("is_shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "id"),
            },
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
        migrations.AddField(
            model_name="run",
            name="tags",
            field=models.ManyToManyField(blank=True, related_name="runs", to="analysis.tag"),
        ),
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=20)),
                ("who", models.CharField(max_length=64)),
                (
                    "free_at_seconds",
                    models.FloatField(help_text="When the full rate limit is available again, in seconds since 1970."),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("scope", "who"), name="throttle_once_per_scope")],
            },
        ),
        migrations.CreateModel(
            name="TrendAcknowledgement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("metric", models.CharField(max_length=20)),
                ("note", models.CharField(max_length=500)),
                ("acknowledged_at", models.DateTimeField(auto_now=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trend_acknowledgements",
                        to="analysis.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trust",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "host",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="As the sender names it: anybody who may report can.",
                        max_length=200,
                    ),
                ),
                ("trusted_at", models.DateTimeField(auto_now_add=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "revoked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trust",
                        to="analysis.apitoken",
                    ),
                ),
                (
                    "trusted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "trust",
                "ordering": ("-trusted_at", "-id"),
            },
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
        migrations.CreateModel(
            name="DeviceDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("reading_count", models.PositiveIntegerField()),
                ("used_sum_bytes", models.BigIntegerField(help_text="The sum over all readings, for their mean.")),
                ("most_used_bytes", models.BigIntegerField()),
                ("busy_reading_count", models.PositiveIntegerField(default=0)),
                (
                    "busy_sum_percent",
                    models.BigIntegerField(
                        default=0, help_text="Sum over those readings of the share of time in which the GPU computed."
                    ),
                ),
                (
                    "device",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="analysis.device",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("device", "day"), name="device_day_once")],
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "runs_waiting_max",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most runs in the queue at the same time, estimates included.",
                        null=True,
                        verbose_name="runs waiting",
                    ),
                ),
                (
                    "runs_per_day_max",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most measurements requested in any 24 hours; estimates do not count.",
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
                        help_text="Devices that may be used. Empty: every device that is open to the person.",
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
            ],
            options={
                "ordering": ("group__name", "user__username"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("group__isnull", False), ("user__isnull", True)),
                            models.Q(("group__isnull", True), ("user__isnull", False)),
                            _connector="OR",
                        ),
                        name="quota_of_a_user_or_of_a_group",
                        violation_error_message="Name a person or a group, not both.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_key", models.CharField(max_length=32)),
                ("engine_version", models.CharField(blank=True, default="", max_length=40)),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="By the clock of the sender, which may be wrong: nothing is ordered by it.",
                        null=True,
                    ),
                ),
                ("events_received", models.PositiveIntegerField(default=0)),
                (
                    "probe_bytes",
                    models.PositiveIntegerField(default=0, help_text="Bytes of the probes among the events."),
                ),
                (
                    "document_sha256",
                    models.CharField(
                        blank=True, help_text="SHA-256 of the result's bytes as received.", max_length=64, null=True
                    ),
                ),
                (
                    "reported_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="Empty: the account was deleted.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: reported with a name and a password.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reports",
                        to="analysis.apitoken",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="report", to="analysis.run"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("reported_by", "run_key"), name="report_once_per_key"),
                    models.UniqueConstraint(fields=("reported_by", "document_sha256"), name="report_once_per_document"),
                ],
            },
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
            model_name="measurement",
            constraint=models.UniqueConstraint(
                fields=("run", "attempt", "sequence"), name="measurement_once_per_sequence"
            ),
        ),
        migrations.AddIndex(
            model_name="matrixcell",
            index=models.Index(fields=["precision", "optimizer", "settings"], name="matrix_by_settings"),
        ),
        migrations.AddConstraint(
            model_name="matrixcell",
            constraint=models.UniqueConstraint(
                fields=("kind", "card", "model", "input_size", "precision", "optimizer", "settings"),
                name="matrix_cell_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="idempotencykey",
            constraint=models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once_per_owner"),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(models.Q(("uuid", ""), _negated=True), ("is_reported", False)),
                fields=("uuid",),
                name="device_once_per_uuid",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_reported", False), ("uuid", "")),
                fields=("host", "device"),
                name="device_once_per_host",
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_reported", True)),
                fields=("host", "device", "uuid", "name"),
                name="reported_device_once_per_host",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["-started_at"], name="attempt_latest_started"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["device", "-ended_at"], name="attempt_latest_ended"),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number"),
        ),
        migrations.AddConstraint(
            model_name="runlog",
            constraint=models.UniqueConstraint(
                fields=("run", "attempt", "sequence"), name="log_line_once_per_sequence"
            ),
        ),
        migrations.AddIndex(
            model_name="runsetting",
            index=models.Index(fields=["run"], name="setting_of_run"),
        ),
        migrations.AddConstraint(
            model_name="runsetting",
            constraint=models.UniqueConstraint(fields=("setting", "run"), name="setting_once_per_run"),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="saved_view_once_per_name"),
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
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["-created_at", "-id"], name="run_newest_first"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "queued")),
                fields=["requested_by", "priority", "created_at", "id"],
                name="run_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["requested_by", "-started_at"], name="run_by_person"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)), fields=["-finished_at"], name="run_latest_ended"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["state", "-created_at"], name="run_by_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["model", "-created_at"], name="run_by_model"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device_name", "-created_at"], name="run_by_gpu"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["precision", "-created_at"], name="run_by_precision"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["optimizer", "-created_at"], name="run_by_optimizer"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["requested_by", "-created_at"], name="run_of_person"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device", "-created_at"], name="run_on_device"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["name", "-created_at"], name="run_by_name"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                django.db.models.functions.text.Replace("kind", models.Value("command"), models.Value("measurement")),
                models.OrderBy(models.F("created_at"), descending=True),
                name="run_by_kind",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("largest_batch_size__isnull", False)),
                fields=["largest_batch_size", "id"],
                name="run_by_largest",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_batch_size__isnull", False)),
                fields=["recommended_batch_size", "id"],
                name="run_by_recommended",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("claimed_speedup__isnull", False)),
                fields=["claimed_speedup", "id"],
                name="run_by_speedup",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_samples_per_second__isnull", False)),
                fields=["recommended_samples_per_second", "id"],
                name="run_by_samples",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("recommended_memory_bytes__isnull", False)),
                fields=["recommended_memory_bytes", "id"],
                name="run_by_memory",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("claimed_saving_per_year_usd__isnull", False)),
                fields=["claimed_saving_per_year_usd", "id"],
                name="run_by_saving",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("cost_per_million_samples_usd__isnull", False)),
                fields=["cost_per_million_samples_usd", "id"],
                name="run_by_cost",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["-updated_at"], name="run_by_update"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["device", "state"], name="run_on_device_by_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["certified", "-created_at"], name="run_by_certificate"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("is_baseline", True)), fields=["-created_at"], name="run_baselines"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("is_shared", True)), fields=["-created_at"], name="run_shared"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("reported_from", ""), _negated=True), fields=["-created_at"], name="run_reported"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="run_deleted"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "finished")),
                fields=["model", "device_name", "precision", "optimizer", "-finished_at"],
                name="run_trend",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("estimate_peak_error__isnull", False)),
                fields=["-finished_at"],
                name="run_grading_estimate",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("reported_from", ""), ("state", "running")),
                fields=("device",),
                name="one_running_run_per_device",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "running"), _negated=True),
                    models.Q(models.Q(("token", ""), _negated=True), ("heartbeat_at__isnull", False)),
                    _connector="OR",
                ),
                name="running_run_has_token_and_heartbeat",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("is_trusted", True), ("reported_from", "")),
                    models.Q(
                        models.Q(("reported_from", ""), _negated=True), models.Q(("state", "queued"), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="reported_run_is_never_queued",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "estimate"), _negated=True),
                    models.Q(("device", None), ("largest_batch_size", None), ("requested_device", None)),
                    _connector="OR",
                ),
                name="estimate_has_no_device_and_nothing_measured",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("is_baseline", False),
                        ("kind", "validation"),
                        ("largest_batch_size", None),
                    ),
                    models.Q(models.Q(("kind", "validation"), _negated=True), ("verdict", "")),
                    _connector="OR",
                ),
                name="only_validation_has_verdict_and_no_batch_size",
            ),
        ),
        migrations.AddConstraint(
            model_name="trendacknowledgement",
            constraint=models.UniqueConstraint(fields=("run", "metric"), name="trend_step_acknowledged_once"),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("token__isnull", True), models.Q(("host", ""), _negated=True)),
                    models.Q(("host", ""), ("token__isnull", False)),
                    _connector="OR",
                ),
                name="trust_in_a_token_or_a_host",
                violation_error_message="Name a token or a host, not both.",
            ),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None), ("token__isnull", False)),
                fields=("token",),
                name="trust_once_per_token",
                violation_error_message="This token is trusted already.",
            ),
        ),
        migrations.AddConstraint(
            model_name="trust",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None), models.Q(("host", ""), _negated=True)),
                fields=("host",),
                name="trust_once_per_host",
                violation_error_message="This host is trusted already.",
            ),
        ),
    ]
