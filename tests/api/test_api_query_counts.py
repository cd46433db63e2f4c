"""What the database is asked does not grow with what is answered."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.audit.record import record
from analysis.models import ApiToken, Device, Run, SavedView
from tests.factories import make_card, make_estimate, make_user
from tests.factories.matrix import estimated, measured
from tests.factories.results import CARD, finished, finished_on_day

pytestmark = pytest.mark.django_db


def more_views() -> None:
    SavedView.objects.create(owner=make_user(f"o{SavedView.objects.count()}"), name="v", query="", is_shared=True)


def more_tokens() -> None:
    number = ApiToken.objects.count()
    ApiToken.objects.create(owner=make_user(f"o{number}"), name="t", prefix="mm_r_", digest=str(number))


def more_cells() -> None:
    gpus = ("a10", "l4", "t4", "a100-40gb")
    measured(gpus[Run.objects.count() % 4])
    estimated(*gpus)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("saved-views/", more_views),
        ("tokens/?owner=all", more_tokens),
        ("audit/", lambda: record("run.cancel", target=("run", "7"))),
        ("estimates/", lambda: make_estimate()),
        ("devices/", lambda: make_card(Device.objects.count())),
        ("matrix/", more_cells),
        (f"trends/?model=bert-tiny&gpu={CARD.name}", lambda: finished_on_day(Run.objects.count())),
    ],
)
def test_a_longer_answer_needs_no_more_queries(root_client: Client, path: str, more: Callable[[], object]) -> None:
    counts = []
    for _ in range(2):
        more()
        more()
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert root_client.get(f"/api/v1/{path}").status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 8


def test_more_runs_are_compared_with_no_more_queries(root_client: Client, django_assert_max_num_queries) -> None:
    ids = [finished().pk for _ in range(6)]
    with django_assert_max_num_queries(9):
        assert root_client.post("/api/v1/compare/", {"ids": ids}, content_type="application/json").status_code == 200
