"""What the tables promise, and the plans that keep the list quick."""

from dataclasses import fields

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.http import QueryDict

from analysis.lists.runs.query import parse_query
from analysis.models import (
    TERMINAL_STATES,
    DeliveryAttempt,
    Device,
    DeviceDay,
    IdempotencyKey,
    Measurement,
    NewsEvent,
    Run,
    RunSetting,
    RunText,
    State,
    Throttle,
)
from engine.facts.result import MemoryByKind, Outcome, Probe, Purpose, Reason
from engine.settings.catalog import workload_ids
from engine.settings.step_settings import OPTIMIZER_LABELS, PRECISIONS
from tests.factories import make_device, make_run
from tests.factories.history import store


def test_every_figure_of_a_probe_is_a_column():
    columns = {field.name for field in Measurement._meta.get_fields()}
    assert {field.name for field in fields(Probe)} <= columns


def test_a_measurement_gives_back_what_was_not_measured_as_none():
    probe = Measurement(batch_size=4, outcome="size_limit", purpose="search").probe
    assert (probe.peak_phase, probe.error_message, probe.step_seconds, probe.memory_by_kind) == (None,) * 4


def test_a_measurement_gives_back_memory_by_kind_as_the_engines_type():
    kinds = MemoryByKind(1, 2, 3, 4, 5)
    stored = {"parameters_bytes": 1, "gradients_bytes": 2, "optimizer_state_bytes": 3}
    stored |= {"activations_bytes": 4, "other_bytes": 5}
    row = Measurement(batch_size=4, outcome="fits", purpose="search", memory_by_kind=stored)
    assert row.probe.memory_by_kind == kinds


@pytest.mark.parametrize("state", State)
def test_a_run_is_over_in_every_state_but_queued_and_running(state):
    assert Run(state=state).is_over is (state not in (State.QUEUED, State.RUNNING))
    assert (state in TERMINAL_STATES) is Run(state=state).is_over


@pytest.mark.django_db
def test_rows_have_names_that_people_can_read():
    device = make_device()
    run = make_run(device)
    assert str(device) == "Test CPU (lab cpu)"
    assert str(run) == f"run {run.pk}: bert-tiny, queued"
    assert run.get_absolute_url() == f"/runs/{run.pk}/"


def test_every_table_that_says_something_to_people_is_in_the_admin_panel():
    # an index, what the API counts and remembers, and what deliveries are made of and consist of: they are shown there;
    # the fleet page shows the memory of each day
    of_machines = {DeviceDay, RunSetting, RunText, IdempotencyKey, Throttle, NewsEvent, DeliveryAttempt}
    left_out = {model for model in apps.get_app_config("analysis").get_models() if model not in admin.site._registry}
    assert left_out == of_machines


def test_every_word_of_the_engine_fits_its_column():
    lengths = {field.name: field.max_length for field in (*Run._meta.fields, *Measurement._meta.fields)}
    words = {"outcome": Outcome, "purpose": Purpose, "boundary_reason": Reason}
    words |= {"precision": PRECISIONS, "optimizer": OPTIMIZER_LABELS, "model": workload_ids()}
    assert [word for column, all_words in words.items() for word in all_words if len(word) > lengths[column]] == []


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plan")
def test_what_a_device_runs_now_is_found_without_walking_all_that_it_ever_ran():
    store(20, state="finished")
    for query in (Device.objects.with_activity(), Device.objects.idle()):
        assert "run_on_device_by_state" in query.explain()


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL reads so few rows without an index")
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
    ],
)
def test_an_index_has_the_order_of_the_list(query, index, monkeypatch):
    monkeypatch.setattr("analysis.lists.runs.filters.FEW", 0)
    store(3)
    plan = parse_query(QueryDict(query)).parts[0].rows.values_list("pk")[:51].explain()
    assert f"USING INDEX {index}" in plan or f"USING COVERING INDEX {index}" in plan
