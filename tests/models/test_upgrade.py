"""The migrations make the tables that the models describe, can be taken back, and upgrade without loss."""

import lzma
import os
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from analysis.first_rows import make_first_rows
from analysis.models import RetentionRule

ROOT = Path(__file__).resolve().parents[2]
EARLIER = ROOT / "tests" / "data" / "databases" / "e197c3f3.sqlite3.xz"
OPEN_ALL = """
import django
django.setup()
from django.contrib.auth.models import User
from django.test import Client
from analysis.models import Run
client = Client()
client.force_login(User.objects.get(username="manager"))
for run in Run.objects.all():
    for path, kind in ((f"/runs/{run.pk}/", "text/html"), (f"/api/v1/runs/{run.pk}/", "application/json")):
        opened = client.get(path, headers={"accept": kind}, SERVER_NAME="localhost")
        print(opened.status_code, run.kind, run.state)
"""


def rows(database: Path) -> dict[str, int]:
    with sqlite3.connect(database) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in tables if name.startswith(("analysis_", "auth_user"))]
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in kept}


@pytest.mark.slow
def test_each_row_is_there_and_each_page_opens(tmp_path: Path) -> None:
    database = tmp_path / "memorymark.sqlite3"
    database.write_bytes(lzma.decompress(EARLIER.read_bytes()))
    before = rows(database)
    environment = {
        **os.environ,
        **{"MEMORYMARK_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "memorymark_site.settings"},
    }
    environment.pop("DATABASE_URL", None)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("manage.py", "migrate")
    run("manage.py", "collectstatic", "--noinput", "-v", "0")
    assert rows(database) == before
    run("manage.py", "decide_again")
    opened = [line.split() for line in run("-c", OPEN_ALL).splitlines()]
    assert {status for status, _, _ in opened} == {"200"}
    kinds = {"measurement", "command", "estimate", "validation", "race", "own_race"}
    assert {kind for _, kind, _ in opened} == kinds
    assert {"queued", "running", "finished", "failed", "cancelled"} <= {state for _, _, state in opened}


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
    call_command("migrate", "analysis", NAMES[-1], verbosity=0)
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
