"""The rows that every database has: the roles with their rights, and the rules of retention."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions

from analysis.models.retention import FIRST_DAYS
from analysis.permissions import ROLES


def make_first_rows(sender: AppConfig, using: str, apps: Apps = installed, **_: Any) -> None:
    """Make missing rows, once the tables are there; what a manager changed stays as it is."""
    try:
        rules = apps.get_model("analysis", "RetentionRule")
    except LookupError:  # the migrations were taken back
        return
    create_permissions(sender, verbosity=0, using=using, apps=apps)  # Django does it later
    days = [rules(what=what, days=days) for what, days in FIRST_DAYS.items()]
    rules._base_manager.using(using).bulk_create(days, ignore_conflicts=True)
    groups = apps.get_model("auth", "Group")
    known = set(groups.objects.using(using).values_list("name", flat=True))
    for role in ROLES.keys() - known:
        groups.objects.using(using).bulk_create([groups(name=role)])
        _give_rights(groups.objects.using(using).get(name=role), ROLES[role], using, apps)


def _give_rights(group: Any, rights: tuple[str, ...], using: str, apps: Apps) -> None:
    codenames = [right.partition(".")[2] for right in rights]
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    found = permissions.filter(content_type__app_label="analysis", content_type__model="run", codename__in=codenames)
    links = apps.get_model("auth", "Group").permissions.through
    links.objects.using(using).bulk_create(links(group_id=group.pk, permission_id=each.pk) for each in found)
