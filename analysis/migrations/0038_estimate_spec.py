"""What an estimate is for stands in its spec, as with any other kind, and no longer in columns of its own."""

from django.db import migrations, models

AT_ONCE = 500
OWN = {"gpu": "all", "what_to_change": "", "frontier": []}


def into_specs(apps, schema_editor):
    """Add card, changes and sizes to the specs of the estimates."""

    def change(run):
        run.spec = {**run.spec, **{name: getattr(run, name) for name in OWN}}

    _change(apps, change, ["spec"])


def into_columns(apps, schema_editor):
    """Take them out of the specs: earlier versions read them from the columns."""

    def change(run):
        for name, default in OWN.items():
            setattr(run, name, run.spec.get(name, default))
        run.spec = {name: value for name, value in run.spec.items() if name not in OWN}

    _change(apps, change, ["spec", *OWN])


def _change(apps, change, columns):
    """Change a few at a time, without their results: what is held stays small, and each statement short."""
    estimates = apps.get_model("analysis", "Run")._base_manager.filter(kind="estimate").only("spec", *OWN)
    last = 0
    while runs := list(estimates.filter(pk__gt=last).order_by("pk")[:AT_ONCE]):
        for run in runs:
            change(run)
        estimates.model._base_manager.bulk_update(runs, columns)
        last = runs[-1].pk


class Migration(migrations.Migration):
    dependencies = [("analysis", "0037_no_gain")]

    operations = [
        migrations.RunPython(into_specs, into_columns),
        migrations.RemoveField(model_name="run", name="frontier"),
        migrations.RemoveField(model_name="run", name="what_to_change"),
        migrations.AlterField(
            model_name="run",
            name="gpu",
            field=models.CharField(
                blank=True,
                default="",
                help_text="What was estimated, here or before measuring: a card of the catalogue, all, or cpu.",
                max_length=40,
            ),
        ),
    ]
