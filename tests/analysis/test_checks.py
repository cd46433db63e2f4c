"""Settings that would repeat runs or lose writes are found at start."""

from __future__ import annotations

import pytest
from django.conf import settings as real

from analysis.checks import check_database, check_exposure, check_queue


def test_the_settings_as_they_are_pass():
    assert check_queue() + check_database() + check_exposure() == []


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({"timeout": 21_900}, "E001"),
        ({"timeout": None}, "E001"),
        ({"retry": 3 * real.Q_CLUSTER["timeout"]}, "E002"),
        ({"orm": None}, "E003"),
        ({"workers": 2}, "E005"),
    ],
)
def test_a_queue_that_would_repeat_or_lose_runs_is_refused(settings, changed, number):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **changed}
    assert f"analysis.{number}" in [error.id for error in check_queue()]


def test_a_queue_name_that_would_be_ignored_is_refused(settings):
    settings.Q_CLUSTER = {key: value for key, value in settings.Q_CLUSTER.items() if key != "ALT_CLUSTERS"}
    assert [error.id for error in check_queue()] == ["analysis.E004"]


def test_sqlite_that_locks_late_is_refused(monkeypatch):
    database = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {"timeout": 20}}
    monkeypatch.setitem(real.DATABASES, "default", database)
    assert [error.id for error in check_database()] == ["analysis.E006"]


def test_an_open_door_in_production_is_told(settings):
    settings.SERVES_THIS_MACHINE_ONLY = settings.PRODUCTION = True
    assert [warning.id for warning in check_exposure()] == ["analysis.W001"]
