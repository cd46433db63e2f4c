"""What the size to use of a matrix cell leaves free. Cells of before show what they showed: it is not known of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0016_speed_intervals"),
    ]

    operations = [
        migrations.AddField(
            model_name="matrixcell",
            name="reserve_fraction",
            field=models.FloatField(
                help_text="What the recommended one leaves free, at least; empty: of before 0.5, not known.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="matrixcell",
            name="headroom_bytes",
            field=models.BigIntegerField(help_text="What the size that is shown left of the memory.", null=True),
        ),
    ]
