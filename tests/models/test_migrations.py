"""The migrations make the tables that the models describe, and can be taken back."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from analysis.models import MatrixCell, Report, Run
from engine.estimate.spec import EstimateSpec
from tests.factories import make_device


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
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_reports_of_an_earlier_version_are_those_of_the_people_who_requested_their_runs():
    before = [("analysis", "0031_share_links")]
    call_command("migrate", *before[0], verbosity=0)
    earlier = MigrationExecutor(connection).loader.project_state(before).apps
    person = earlier.get_model("auth", "User").objects.create(username="ann")
    for number, owner in enumerate((person, None)):
        run = earlier.get_model("analysis", "Run").objects.create(model="bert-tiny", spec={}, requested_by=owner)
        earlier.get_model("analysis", "Report").objects.create(run=run, run_key=f"{number}" * 32)
    call_command("migrate", verbosity=0)
    found = Report.objects.order_by("run_key").values_list("reported_by__username", "probe_bytes")
    assert list(found) == [("ann", 0), (None, 0)]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_reports_of_two_people_with_the_same_key_can_be_taken_back_and_the_newest_keeps_it():
    for name, key in (("ann", "a" * 32), ("bea", "a" * 32), ("cleo", "c" * 32)):
        person = User.objects.create(username=name)
        run = Run.objects.create(model="bert-tiny", spec={}, requested_by=person)
        Report.objects.create(run=run, reported_by=person, run_key=key, document_sha256=key * 2)
    call_command("migrate", "analysis", "0032_claims", verbosity=0)
    call_command("migrate", verbosity=0)
    found = {report.reported_by.username: report for report in Report.objects.select_related("reported_by")}
    kept = [(name, found[name].run_key, found[name].document_sha256) for name in ("bea", "cleo")]
    assert kept == [("bea", "a" * 32, "a" * 64), ("cleo", "c" * 32, "c" * 64)]
    assert found["ann"].run_key not in {"a" * 32, "c" * 32}
    assert (len(found["ann"].run_key), found["ann"].document_sha256) == (32, None)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_size_of_an_earlier_version_that_is_no_gain_is_no_recommendation_in_lists():
    before = [("analysis", "0036_kind_of_command")]
    call_command("migrate", *before[0], verbosity=0)
    earlier = MigrationExecutor(connection).loader.project_state(before).apps
    gains = [(1.4, 1.3), (1.4, None), (1.01, None), (1.05, 0.97), (0.9, 0.88)]
    for number, (speedup, low) in enumerate(gains):
        run = earlier.get_model("analysis", "Run").objects.create(
            model="bert-tiny",
            spec={},
            current_batch_size=4,
            recommended_batch_size=8,
            speedup=speedup,
            speedup_low=low,
            claimed_speedup=speedup,
        )
        earlier.get_model("analysis", "MatrixCell").objects.create(
            **{"run": run, "kind": "measured", "model": "bert-tiny", "input_size": number, "precision": "fp32"},
            **{"optimizer": "sgd", "card": "t4", "memory_bytes": 1, "answered_at": run.created_at},
            **{"recommended_batch_size": 8, "with_reserve_batch_size": 8, "largest_batch_size": 8},
        )
    kept = {"current_batch_size": 4, "recommended_batch_size": 4, "speedup": 1.0}
    earlier.get_model("analysis", "Run").objects.create(model="bert-tiny", spec={}, **kept)
    call_command("migrate", verbosity=0)
    columns = ("recommended_batch_size", "claimed_speedup", "matrix_cells__recommended_batch_size")
    known, unknown = (8, 1.4, 8), (None, None, None)
    found = list(Run.all_runs.order_by("pk").values_list(*columns))
    assert found == [known, known, unknown, unknown, unknown, (4, None, None)]
    assert set(MatrixCell.objects.values_list("with_reserve_batch_size", flat=True)) == {8}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_what_a_stored_estimate_is_for_moves_into_its_spec_and_back():
    before = [("analysis", "0037_no_gain")]
    call_command("migrate", *before[0], verbosity=0)
    columns = ("gpu", "what_to_change", "frontier")
    values = [("a10", "grid", [64, 128]), ("all", "", []), ("cpu", "", [])]
    earlier = MigrationExecutor(connection).loader.project_state(before).apps.get_model("analysis", "Run")
    for each in values:
        own = dict(zip(columns, each, strict=True))
        earlier.objects.create(kind="estimate", model="bert-tiny", spec={"model": "bert-tiny"}, **own)
    earlier.objects.create(model="bert-tiny", spec={"model": "bert-tiny"}, gpu="t4")
    call_command("migrate", verbosity=0)
    *estimates, measured = Run.all_runs.order_by("pk")
    specs = [EstimateSpec.from_dict(run.spec) for run in estimates]
    assert [(spec.gpu, spec.what_to_change, list(spec.frontier)) for spec in specs] == values
    assert [run.gpu for run in (*estimates, measured)] == ["a10", "all", "cpu", "t4"]
    assert (measured.spec, list(Run.objects.answering())) == ({"model": "bert-tiny"}, estimates[:1])
    call_command("migrate", *before[0], verbosity=0)
    assert list(earlier.objects.order_by("pk").values_list(*columns)) == [*values, ("t4", "", [])]
    assert {str(spec) for spec in earlier.objects.values_list("spec", flat=True)} == {"{'model': 'bert-tiny'}"}
    call_command("migrate", verbosity=0)


@pytest.fixture
def make_roles(db):
    """As the migration does, in a lab that has no roles yet."""
    Group.objects.all().delete()
    migration = import_module("analysis.migrations.0009_roles")
    return lambda: migration.make_roles(apps, SimpleNamespace(connection=connection))


def test_the_staff_manage_and_whoever_left_would_not(make_roles):
    for name, columns in {"ann": {}, "bea": {"is_staff": True}, "cleo": {"is_staff": True, "is_active": False}}.items():
        User.objects.create_user(name, **columns)
    make_roles()
    roles = dict(User.objects.values_list("username", "groups__name"))
    assert roles == {"ann": "operator", "bea": "GPU manager", "cleo": "operator"}
    assert not User.objects.get(username="cleo").is_active


def test_a_labs_own_group_with_the_name_of_a_role_keeps_its_people_and_devices_under_another_name(make_roles):
    own, device = Group.objects.create(name="GPU manager"), make_device()
    own.user_set.add(User.objects.create_user("ann"))
    device.allowed_groups.add(own)
    make_roles()
    make_roles()
    groups = User.objects.get(username="ann").groups.order_by("name")
    assert list(groups.values_list("name", flat=True)) == ["GPU manager (before 0.4)", "operator"]
    assert [group.name for group in device.allowed_groups.all()] == ["GPU manager (before 0.4)"]
