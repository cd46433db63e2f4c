"""Tokens of the API, and quotas."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analysis", "0009_roles")]

    operations = []
