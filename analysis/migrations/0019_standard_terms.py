"""Names as the field uses them: a run has a requested device, and a search term."""

import django.db.models.deletion
from django.db import migrations, models

CONSTRAINT = "estimate_has_no_device_and_nothing_measured"


class Migration(migrations.Migration):
    dependencies = [("analysis", "0018_takes_over")]

    operations = [
        # the constraint names a column that is renamed
        migrations.RemoveConstraint(model_name="run", name=CONSTRAINT),
        migrations.RenameField(model_name="run", old_name="asks_device", new_name="requested_device"),
        migrations.RenameField(model_name="run", old_name="asks_kind", new_name="requested_kind"),
        migrations.RenameField(model_name="run", old_name="asks_device_class", new_name="requested_device_class"),
        migrations.AlterField(
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
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "estimate"), _negated=True),
                    models.Q(("device", None), ("largest_batch_size", None), ("requested_device", None)),
                    _connector="OR",
                ),
                name=CONSTRAINT,
            ),
        ),
        migrations.RenameModel(old_name="RunWord", new_name="SearchTerm"),
        migrations.AlterField(
            model_name="quota",
            name="devices",
            field=models.ManyToManyField(
                blank=True,
                help_text="Only these; empty: every device that is open to them.",
                related_name="+",
                to="analysis.device",
            ),
        ),
    ]
