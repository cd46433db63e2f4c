"""CPU cells of the matrix are named "limited to 1.0 GiB", as new runs name them; before, "held to"."""

from typing import Any

from django.db import migrations
from django.db.models import Value
from django.db.models.functions import Replace


def rename(apps: Any, old: str, new: str) -> None:
    cells = apps.get_model("analysis", "MatrixCell").objects.filter(is_cpu=True, card__contains=f" {old} ")
    cells.update(card=Replace("card", Value(f" {old} "), Value(f" {new} ")))


def forwards(apps: Any, schema_editor: Any) -> None:
    rename(apps, "held to", "limited to")


def backwards(apps: Any, schema_editor: Any) -> None:
    rename(apps, "limited to", "held to")


class Migration(migrations.Migration):
    dependencies = [("analysis", "0022_help_texts")]

    operations = [migrations.RunPython(forwards, backwards)]
