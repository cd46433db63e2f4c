"""What the API keeps to answer a repeated request the same way."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analysis", "0011_audit_retention")]

    operations = []
