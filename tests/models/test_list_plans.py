"""The plans that keep the list quick."""

import pytest
from django.db import connection
from django.http import QueryDict

from analysis.lists.runs.query import parse_query
from tests.factories.history import store

pytestmark = pytest.mark.django_db


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
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL reads so few rows without an index")
    monkeypatch.setattr("analysis.lists.runs.filters.FEW", 0)
    store(3)
    plan = parse_query(QueryDict(query)).parts[0].rows.values_list("pk")[:51].explain()
    assert f"USING INDEX {index}" in plan or f"USING COVERING INDEX {index}" in plan
