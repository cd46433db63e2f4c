"""The rules of retention."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analysis", "0010_tokens_quotas")]

    operations = []
