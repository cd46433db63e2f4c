"""Rows of a list say what their serializer describes."""

import pytest
from django.test import Client
from django.utils import timezone

from analysis.api.v1.base.serializers import RunDetailSerializer, RunSerializer
from analysis.models import Run
from analysis.runs import services
from analysis.runs.queue import forecast as queue_forecast
from analysis.runs.queue.forecast import queue_positions
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_estimate,
    make_measured_run,
    make_probe,
    make_run,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(alice, root) -> list[Run]:
    """One in each kind of state, with and without what can be missing."""
    card, device = make_card(), make_device("other")
    measured = make_measured_run(device, requested_by=alice)
    services.run_annotate(run_id=measured.pk, by=root, name="nightly", note="a note", tags=["paper", "a"])
    probed = make_claimed_run(card)
    services.measurement_add(run_id=probed.pk, token=probed.token, sequence=1, probe=make_probe())
    made = [measured, probed, make_run(card), make_run(card, requested_by=alice), make_estimate("a10")]
    return list(Run.objects.with_places().filter(pk__in=[run.pk for run in made]).order_by("pk"))


def test_a_row_of_a_list_has_every_member_that_is_described_as_the_run_itself_answers_it(runs, alice_client: Client):
    rows = alice_client.get("/api/v1/runs/?sort=run").json()["results"]
    assert [row["id"] for row in rows] == [run.pk for run in runs]
    assert [row["queue_position"] for row in rows] == [None, None, 2, 1, None]  # runs of nobody were served before
    assert (rows[0]["tags"], rows[0]["host"], rows[0]["requested_by"]) == (["a", "paper"], "other", "alice")
    for row in rows:
        whole = alice_client.get(f"/api/v1/runs/{row['id']}/").json()
        assert (list(row), list(whole)) == (list(RunSerializer().fields), list(RunDetailSerializer().fields))
        whole["expected_start_at"] = row["expected_start_at"]  # which is forecast from the present moment
        assert row == {name: whole[name] for name in row}


def test_a_forecast_serves_for_a_moment_and_knows_whoever_came_since(settings, monkeypatch):
    settings.QUEUE_FORECAST_KEPT_SECONDS = 60.0
    monkeypatch.setattr(queue_forecast, "_kept", None)
    card = make_card()
    first, second = make_run(card), make_run(card)
    assert {pk: at.position for pk, at in queue_positions([first, second]).items()} == {first.pk: 1, second.pk: 2}
    Run.objects.filter(pk=first.pk).update(state="cancelled", finished_at=timezone.now())
    assert queue_positions([second])[second.pk].position == 2  # as it was a moment ago
    third = make_run(card)
    assert queue_positions([third])[third.pk].position == 2  # which is not in the forecast that was kept
    assert queue_positions([second])[second.pk].position == 1
