"""Secrets on stored command lines are hidden as they are today, and a host is allowed on one port.

Earlier versions knew fewer names of secrets, and no forms.
"""

from itertools import islice

import django.core.validators
from django.db import migrations, models

from engine.text.masking import masked

_ROWS_AT_ONCE = 200  # a result may have megabytes


def mask(apps, schema_editor):
    """Hide them in the spec and in the result of each run of a command, a bounded number at once."""
    run = apps.get_model("analysis", "Run")
    commands = run._base_manager.filter(spec__has_key="command").order_by("pk")
    rows = commands.values_list("pk", "spec", "result").iterator(_ROWS_AT_ONCE)
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        for pk, spec, result in chunk:
            shown = {"spec": _masked(spec)}
            if isinstance(result, dict) and isinstance(result.get("spec"), dict):
                shown["result"] = {**result, "spec": _masked(result["spec"])}
            before = {"spec": spec, "result": result}
            if any(before[name] != content for name, content in shown.items()):
                run._base_manager.filter(pk=pk).update(**shown)


def _masked(spec):
    command = spec.get("command")
    return {**spec, "command": masked(command)} if isinstance(command, list) else spec


class Migration(migrations.Migration):
    dependencies = [("analysis", "0033_report_limits")]

    operations = [
        migrations.RunPython(mask, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="allowedhost",
            name="host",
            field=models.CharField(
                help_text="As in the URL, in lower case, with its port: chat.lab.internal:8443. "
                "Without one: 443, of http 80.",
                max_length=253,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        r"^((\[[0-9a-f:.]+\]|[a-z0-9._-]+)"
                        r"(:(6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3}))?"
                        r"|[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*)\Z",
                        "A host or address in lower case, with :port unless 443 or 80.",
                    )
                ],
            ),
        ),
    ]
