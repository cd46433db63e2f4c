"""Tests that open every route, also those that hold a place until their response is closed."""

import pytest

from analysis.api.v1.run import run_wait
from analysis.api.waiting import WaitingSlots


@pytest.fixture(autouse=True)
def _streams_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the open streams anew: a test client closes none, and four of another test would be all there are."""
    monkeypatch.setattr(run_wait, "streams", WaitingSlots(run_wait.streams.places))
