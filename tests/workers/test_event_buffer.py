"""What an attempt learns of its surroundings before it measures: stored whole, and no hindrance to the next attempt."""

import pytest

from analysis.models import Measurement
from analysis.runs import services
from analysis.runs.columns.result_columns import probe_columns
from analysis.runs.queue.resume import earlier_attempt
from analysis.runs.services import Lease
from analysis.workers.event_buffer import EventBuffer
from engine.errors import SpecError
from engine.from_json import from_json
from engine.results.result import Boundary
from engine.resume import EarlierAttempt
from engine.text.units import MIB
from tests.factories import FACTS, make_claimed_run, make_measured_run, make_probe
from tests.factories.pages import prior_estimate

pytestmark = pytest.mark.django_db


def test_the_estimate_is_stored_beside_the_device_and_the_next_attempt_still_resumes() -> None:
    run = make_claimed_run()
    events = EventBuffer(Lease(run_id=run.pk, token=run.token))
    events.add_facts(device=FACTS.to_dict(), environment={"torch": "0.0"})
    events.add_facts(estimate=prior_estimate(at_4=390 * MIB))
    events.add_probe(make_probe(4), is_carried=False)
    assert events.store()
    assert set(run.attempts.get().environment) == {"device", "environment", "estimate"}
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="gone")
    again = services.run_claim(device=run.device, owner="another")
    assert again is not None
    earlier = EarlierAttempt.from_dict(earlier_attempt(again))
    assert (earlier.carried(), earlier.boundary) == ([make_probe(4)], None)


def test_a_run_that_is_timed_again_starts_with_the_probes_of_the_first_on_its_device() -> None:
    first = make_measured_run()
    Measurement.objects.create(run=first, attempt=first.attempt, sequence=1, **probe_columns(make_probe(4)))
    again = services.run_again(run=first, requested_by=None, is_timing_only=True)
    assert (again.takes_over, again.requested_device, again.spec) == (first, first.device, first.spec)
    claimed = services.run_claim(device=first.device, owner="tester", run_id=again.pk)
    assert claimed is not None
    earlier = EarlierAttempt.from_dict(earlier_attempt(claimed))
    assert earlier.carried() == [make_probe(4)]
    assert first.result is not None
    assert earlier.boundary == from_json(Boundary, first.result["boundary"])


def test_only_a_finished_measurement_is_timed_again() -> None:
    with pytest.raises(SpecError, match="finished measurement"):
        services.run_again(run=make_claimed_run(), requested_by=None, is_timing_only=True)


def test_an_estimate_without_a_device_is_not_waited_for() -> None:
    run = make_claimed_run()
    assert not EventBuffer(Lease(run_id=run.pk, token=run.token)).knows_device
