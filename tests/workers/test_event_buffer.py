"""What an attempt learns of its surroundings before it measures: stored whole, and no hindrance to the next attempt."""

from __future__ import annotations

import pytest

from analysis.runs import services
from analysis.runs.resume import known
from analysis.runs.services import Lease
from analysis.workers.event_buffer import EventBuffer
from engine.known import Known
from engine.units import MIB
from tests.factories import FACTS, make_claimed_run, make_probe
from tests.factories.pages import prior_estimate

pytestmark = pytest.mark.django_db


def test_the_estimate_is_stored_beside_the_device_and_the_next_attempt_still_resumes() -> None:
    run = make_claimed_run()
    events = EventBuffer(Lease(run_id=run.pk, token=run.token))
    events.learn(device=FACTS.to_dict(), environment={"torch": "0.0"})
    events.learn(estimate=prior_estimate(at_4=390 * MIB))
    events.measured(make_probe(4), is_carried=False)
    assert events.store()
    assert set(run.attempts.get().environment) == {"device", "environment", "estimate"}
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="gone")
    again = services.run_claim(device=run.device, owner="another")
    assert again is not None
    assert Known.from_dict(known(again)).carried() == [make_probe(4)]


def test_an_estimate_without_a_device_is_not_waited_for() -> None:
    run = make_claimed_run()
    assert not EventBuffer(Lease(run_id=run.pk, token=run.token)).knows_device
