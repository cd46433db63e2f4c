"""Every device has a host; a card is one row, wherever it is."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0003_take_over")]

    operations = [
        # so that taking this back finds a value for the rows there are
        migrations.AlterField(
            model_name="device", name="host_name", field=models.CharField(default="", max_length=200)
        ),
        migrations.RemoveField(model_name="device", name="host_name"),
        migrations.AlterField(
            model_name="device",
            name="host",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="devices", to="analysis.host"
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("uuid", ""), _negated=True), fields=("uuid",), name="device_once_per_uuid"
            ),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(
                condition=models.Q(("uuid", "")), fields=("host", "device"), name="device_once_per_host"
            ),
        ),
    ]
