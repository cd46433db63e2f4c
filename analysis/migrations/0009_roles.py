"""The three roles. Who was here before keeps what she could do: the staff manage, everybody else starts runs.

An account that is closed stays closed, and would manage nothing if somebody opened it: that is given by hand.
"""

from django.conf import settings
from django.db import migrations

OPERATOR, MANAGER = "operator", "GPU manager"
NAMES = {
    "view_run": "Can view run",
    "add_run": "Can add run",
    "manage_portal": "May change what is everybody's, and other people's runs",
}
ROLES = {"viewer": ("view_run",), OPERATOR: ("view_run", "add_run"), MANAGER: tuple(NAMES)}


def make_roles(apps, schema_editor):
    """Permissions are otherwise made after all migrations, which is too late for the groups."""
    database = schema_editor.connection.alias
    kinds = apps.get_model("contenttypes", "ContentType").objects.using(database)
    kind, _ = kinds.get_or_create(app_label="analysis", model="run")
    permissions = apps.get_model("auth", "Permission").objects.using(database)
    made = {
        codename: permissions.get_or_create(content_type=kind, codename=codename, defaults={"name": name})[0]
        for codename, name in NAMES.items()
    }
    groups = apps.get_model("auth", "Group").objects.using(database)
    for role, codenames in ROLES.items():
        rights = {made[codename].pk for codename in codenames}
        _rename_others(groups, role, rights)
        group, _ = groups.get_or_create(name=role)
        group.permissions.add(*rights)
    for user in apps.get_model("auth", "User").objects.using(database).filter(is_superuser=False):
        user.groups.add(groups.get(name=MANAGER if user.is_staff and user.is_active else OPERATOR))


def _rename_others(groups, role, rights):
    """A lab's own group of that name is no role: its members, and the devices kept for it, were not meant for one."""
    group = groups.filter(name=role).first()
    if group is not None and set(group.permissions.values_list("pk", flat=True)) != rights:
        group.name = f"{role} (before 0.4)"
        group.save()


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0008_matrix"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="run",
            options={
                "ordering": ("-created_at", "-id"),
                "permissions": (("manage_portal", NAMES["manage_portal"]),),
            },
        ),
        migrations.RunPython(make_roles, migrations.RunPython.noop),
    ]
