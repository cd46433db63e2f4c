"""The migrations make the tables that the models describe, and can be taken back."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from analysis.first_rows import make_first_rows
from analysis.models import RetentionRule

NAMES = ("0001_portal", "0002_text_index", "0003_readable_names")


@pytest.mark.django_db
def test_no_model_change_is_without_its_migration():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_first_migration_can_be_taken_back_and_applied_again():
    call_command("migrate", "analysis", "zero", verbosity=0)
    assert "analysis_run" not in connection.introspection.table_names()
    call_command("migrate", verbosity=0)
    assert "analysis_run" in connection.introspection.table_names()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_database_that_applied_each_earlier_migration_has_nothing_to_apply():
    portal, text_index = (import_module(f"analysis.migrations.{name}").Migration for name in NAMES[:2])
    recorder = MigrationRecorder(connection)
    for name in NAMES:
        recorder.record_unapplied("analysis", name)
    for app, name in (*portal.replaces, *text_index.replaces):
        recorder.record_applied(app, name)
    Group.objects.get(name="viewer").delete()
    call_command("migrate", verbosity=0)
    assert {("analysis", name) for name in NAMES} <= set(recorder.applied_migrations())
    assert Group.objects.get(name="viewer").permissions.get().codename == "view_run"


@pytest.mark.django_db
def test_roles_and_rules_are_there_and_what_a_manager_changed_stays():
    rights = Group.objects.order_by("name").values_list("name", "permissions__codename")
    operator = [("operator", "add_run"), ("operator", "view_run")]
    assert [each for each in sorted(rights) if each[0] != "GPU manager"] == [*operator, ("viewer", "view_run")]
    assert RetentionRule.objects.count() == len(RetentionRule.What)
    RetentionRule.objects.filter(what="news").update(days=5)
    make_first_rows(apps.get_app_config("analysis"), "default")
    assert RetentionRule.objects.get(what="news").days == 5
