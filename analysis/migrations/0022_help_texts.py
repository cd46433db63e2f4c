"""Help texts as sentences; no column changes."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0021_run_text"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(blank=True, help_text="Empty: valid until it is revoked.", null=True),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="last_used_address",
            field=models.GenericIPAddressField(
                blank=True, help_text="Client address of the last use, as far as it can be trusted.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="last_used_at",
            field=models.DateTimeField(blank=True, help_text="Last use, to the minute.", null=True),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="may_write",
            field=models.BooleanField(default=False, help_text="Whether the token may also change data."),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="name",
            field=models.CharField(help_text="Purpose of the token.", max_length=100),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="prefix",
            field=models.CharField(help_text="First characters of the secret, to distinguish tokens.", max_length=12),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="cause",
            field=models.CharField(blank=True, default="", help_text="Why the attempt gave no result.", max_length=40),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="counted",
            field=models.BooleanField(
                default=True, help_text="Whether the attempt counts towards the limit of attempts."
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="allowed_users",
            field=models.ManyToManyField(
                blank=True,
                help_text="People who may use the device. Empty, and no group: everybody.",
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="calibration",
            field=models.JSONField(
                blank=True, help_text="The card's own constants, measured by `manage.py calibrate`.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="device",
            field=models.CharField(
                help_text="The engine's name of the device: cuda:0, xpu:0, mps:0, cpu.", max_length=20
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="drained",
            field=models.BooleanField(default=False, help_text="Takes no new runs; a running run is left to end."),
        ),
        migrations.AlterField(
            model_name="device",
            name="foreign_used_bytes",
            field=models.BigIntegerField(
                blank=True,
                help_text="Memory that other processes held when a worker last tried to start a run.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="maintenance_until",
            field=models.DateTimeField(
                blank=True, help_text="End of maintenance. Empty: until further notice.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="price_per_hour_usd",
            field=models.FloatField(
                blank=True,
                help_text="Used for the cost and savings of new runs.",
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AlterField(
            model_name="gpuprice",
            name="source",
            field=models.CharField(
                help_text="Source of the price: an offer, an invoice, a price list.", max_length=200
            ),
        ),
        migrations.AlterField(
            model_name="gpuprice",
            name="valid_from",
            field=models.DateField(help_text="Date of the source.", verbose_name="date"),
        ),
        migrations.AlterField(
            model_name="host",
            name="drained",
            field=models.BooleanField(default=False, help_text="Takes no new runs; a running run is left to end."),
        ),
        migrations.AlterField(
            model_name="host",
            name="maintenance_until",
            field=models.DateTimeField(
                blank=True, help_text="End of maintenance. Empty: until further notice.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="idempotencykey",
            name="digest",
            field=models.CharField(help_text="SHA-256 of the address and the body.", max_length=64),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="card_name",
            field=models.CharField(help_text="Name in the catalogue, or the device's own.", max_length=200),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="headroom_bytes",
            field=models.BigIntegerField(help_text="Memory that the shown batch size leaves free.", null=True),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="largest_batch_size",
            field=models.PositiveIntegerField(help_text="0: not even batch size 1 fits."),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="memory_bytes",
            field=models.BigIntegerField(help_text="Memory of the card; of a CPU, its memory limit."),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="reserve_fraction",
            field=models.FloatField(
                help_text="Least share of memory that the recommended size leaves free. Empty: unknown (before 0.5).",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="safe_batch_size",
            field=models.PositiveIntegerField(
                help_text="Estimates only: the largest size within the margin of error.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="settings",
            field=models.CharField(
                blank=True, help_text="Other settings that differ from their defaults.", max_length=250
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="used_batch_size",
            field=models.PositiveIntegerField(
                help_text="The recommended batch size, at which the speed was measured.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="measurement",
            name="is_carried",
            field=models.BooleanField(
                default=False, help_text="Whether the probe was carried over from an earlier attempt."
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="devices",
            field=models.ManyToManyField(
                blank=True,
                help_text="Devices that may be used. Empty: every device that is open to the person.",
                related_name="+",
                to="analysis.device",
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="runs_per_day_max",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Most measurements requested in any 24 hours; estimates do not count.",
                null=True,
                verbose_name="measurements in 24 hours",
            ),
        ),
        migrations.AlterField(
            model_name="quota",
            name="runs_waiting_max",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Most runs in the queue at the same time, estimates included.",
                null=True,
                verbose_name="runs waiting",
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="applied_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="When the rule was last applied.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Days after which this is done. Empty: never. Entries of the audit log: at least 365.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(36500)],
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="reached_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="Logs of runs that ended before this are trimmed.", null=True
            ),
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
                ],
                max_length=20,
                unique=True,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="deleted_at",
            field=models.DateTimeField(
                blank=True, help_text="When the run was deleted. It is in no list and can be restored.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="exit_status",
            field=models.IntegerField(
                blank=True, help_text="Exit status of the engine; negative: the signal that ended it.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="gpu",
            field=models.CharField(
                blank=True, default="", help_text="Estimates only: a card of the catalogue, or all.", max_length=40
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="is_baseline",
            field=models.BooleanField(
                default=False,
                help_text="Pinned: other runs are compared with it, and it is never deleted automatically.",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="is_speed_measurable",
            field=models.BooleanField(
                blank=True, help_text="Whether speeds could be compared. Empty: unknown (before 0.5).", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="limit_bytes",
            field=models.BigIntegerField(blank=True, help_text="Memory limit of the run on its device.", null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="memory_curve",
            field=models.JSONField(
                blank=True, help_text="A few batch sizes with their bytes, for the curve in lists.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="needs_bytes",
            field=models.BigIntegerField(blank=True, help_text="Requested memory limit.", null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="requested_device_class",
            field=models.CharField(
                blank=True, default="", help_text="Requested card: part of its name.", max_length=100
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="restored_at",
            field=models.DateTimeField(blank=True, help_text="When the run was last restored.", null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="speedup_low",
            field=models.FloatField(blank=True, help_text="Lower end of the 95 % interval. Empty: unknown.", null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="suspect_at",
            field=models.DateTimeField(blank=True, help_text="When the heartbeat was first found missing.", null=True),
        ),
        migrations.AlterField(
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
        migrations.AlterField(
            model_name="run",
            name="uses_device_price",
            field=models.BooleanField(
                default=True, help_text="Whether the device's price replaces the price of the spec."
            ),
        ),
        migrations.AlterField(
            model_name="tag",
            name="name",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="throttle",
            name="free_at_seconds",
            field=models.FloatField(help_text="When the full rate limit is available again, in seconds since 1970."),
        ),
    ]
