"""Rows that are read straight into JSON say what their serializer describes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.renderers import JSONRenderer

from analysis.api.v1.base.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.run.run_rows import run_rows
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


def as_json(data: Any) -> Any:
    return json.loads(JSONRenderer().render(data))


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


def test_a_row_of_a_list_is_what_the_serializer_answers(runs):
    described = RunSerializer(runs, many=True, context={"queue_positions": queue_positions(runs)}).data
    rows = run_rows([run.pk for run in runs])
    for row, expected in zip(as_json(rows), as_json(described), strict=True):
        for each in (row, expected):  # a forecast is made from the present moment
            each["expected_start_at"] = each["expected_start_at"] is not None
        assert row == expected
    assert [list(row) for row in rows] == [list(RunSerializer().fields)] * len(runs)
    assert [row["queue_position"] for row in rows] == [None, None, 2, 1, None]  # runs of nobody were served before


def test_a_run_has_every_member_that_is_described_in_its_order(runs, alice_client: Client):
    for run in runs:
        answer = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
        expected = as_json(RunDetailSerializer(run, context={"queue_positions": {}}).data)
        assert list(answer) == list(expected)
        for name in ("queue_position", "expected_start_at", "after_run", "held_by", "held_since"):
            expected[name] = answer[name]
        assert answer == expected


def test_rows_stand_in_the_order_that_is_asked_for_and_those_that_are_gone_are_left_out(runs):
    numbers = [runs[2].pk, 10_000, runs[0].pk]
    assert [row["id"] for row in run_rows(numbers)] == [runs[2].pk, runs[0].pk]


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
