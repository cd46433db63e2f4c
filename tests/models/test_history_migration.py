"""What the migration fills in for runs of before, and the plans that keep the list quick."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.http import QueryDict

from analysis.lists.runs.query import parse_query
from analysis.models import Run
from analysis.runs import services
from tests.factories import make_claimed_run, make_device, make_result
from tests.factories.history import store

pytestmark = pytest.mark.django_db

migration = import_module("analysis.migrations.0006_history")


@pytest.fixture
def finished() -> Run:
    run = make_claimed_run(make_device())
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    return Run.objects.get()


def test_runs_of_before_get_what_their_lines_show(finished):
    Run.objects.update(memory_curve=None, limit_bytes=None, cost_per_million_samples_usd=None)
    migration.fill(apps, None)
    filled = Run.objects.get()
    for name in ("memory_curve", "limit_bytes", "cost_per_million_samples_usd"):
        assert getattr(filled, name) == getattr(finished, name) is not None


def test_runs_that_failed_before_get_the_name_of_their_device(finished):
    Run.objects.update(device_name="", state="failed", result=None)
    migration.fill(apps, None)
    assert Run.objects.get().device_name == "Test CPU"


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", "run_newest_first"),
        ("model=bert-tiny", "run_by_model"),
        ("sort=-largest", "run_by_largest"),
        ("sort=largest", "run_by_largest"),
        ("sort=gpu", "run_by_gpu"),
        ("sort=user", "run_of_person"),
        ("sort=-name", "run_by_name"),
        ("model=bert-tiny&sort=-speedup", "run_by_speedup"),
    ],
)
def test_an_index_has_the_order_of_the_list(query, index, monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL reads so few rows without an index")
    monkeypatch.setattr("analysis.lists.runs.filters.FEW", 0)
    store(3)
    plan = parse_query(QueryDict(query)).parts[0].rows.values_list("pk")[:51].explain()
    assert f"USING INDEX {index}" in plan or f"USING COVERING INDEX {index}" in plan
