"""Estimates of several lengths: the lengths are stored with the estimate and passed to the engine."""

from __future__ import annotations

import json

import pytest

from analysis.runs import services
from analysis.runs.kinds.estimate import CHANGES_SECONDS, TIME_BUDGET_SECONDS
from analysis.workers.supervisor import engine_arguments
from tests.factories import make_claimed_estimate, make_estimate

pytestmark = pytest.mark.django_db


def test_the_sizes_are_passed_to_the_engine() -> None:
    arguments = engine_arguments(make_claimed_estimate("a10", frontier=[128, 64]))
    assert json.loads(arguments[arguments.index("--spec") + 1])["frontier"] == [64, 128]


def test_several_sizes_have_more_time_than_one() -> None:
    assert TIME_BUDGET_SECONDS < make_estimate(frontier=[64, 128]).spec["time_budget_seconds"] <= CHANGES_SECONDS


def test_repeating_it_requests_the_same_sizes() -> None:
    again = services.run_again(run=make_estimate(frontier=[64, 128]), requested_by=None)
    assert again.spec["frontier"] == [64, 128]
