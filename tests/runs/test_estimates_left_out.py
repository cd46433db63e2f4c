"""Estimates are no measurements: wherever runs are counted, timed, scheduled or averaged, they are left out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from analysis.models import Attempt, Run, State
from analysis.runs import services
from analysis.runs.columns.result_columns import measured_columns
from analysis.runs.queue.forecast import queue_positions, typical_seconds
from analysis.workers.health import estimate_left_lying, readiness, run_left_lying
from engine.questions.documents.measured import Measured
from tests.factories import make_card, make_claimed_estimate, make_device, make_estimate, make_result, make_run
from tests.factories.estimates import estimate_of_card
from tests.workers.test_metrics import samples

pytestmark = pytest.mark.django_db


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def finished_estimate(**columns) -> Run:
    run = make_claimed_estimate()
    ended = {"state": State.FINISHED, "started_at": ago(5), "finished_at": ago(1), **columns}
    Run.objects.filter(pk=run.pk).update(**ended)
    return run


def test_a_device_never_claims_one():
    make_estimate()
    assert services.run_claim(device=make_card(), owner="tester") is None


def test_an_estimate_is_never_claimed_as_a_run_and_a_run_never_as_an_estimate():
    device = make_device()
    estimate = make_estimate()
    assert services.run_claim(device=device, owner="tester", run_id=estimate.pk) is None
    Run.objects.all().delete()
    make_run(device)
    assert services.estimate_claim(owner="lab:1") is None


def test_whose_turn_it_is_on_a_card_does_not_depend_on_estimates(alice, root):
    """Alice has an estimate under way, and was served last: her run was asked for first all the same."""
    card = make_card()
    make_estimate(requested_by=alice)
    services.estimate_claim(owner="lab:1")
    first, _ = make_run(card, requested_by=alice), make_run(card, requested_by=root)
    assert services.run_claim(device=card, owner="tester").pk == first.pk


def test_it_has_no_place_in_the_queue_of_devices_and_takes_none():
    estimate = make_estimate()
    run = make_run(make_card())
    found = queue_positions([estimate, run])
    assert set(found) == {run.pk}
    assert found[run.pk].position == 1


def test_its_seconds_do_not_count_as_what_a_run_takes():
    finished_estimate()
    assert typical_seconds("bert-tiny") is None


def test_metrics_count_estimates_by_themselves():
    make_estimate()
    make_claimed_estimate()
    finished_estimate()
    found = samples()
    assert found["memorymark_runs_queued", "normal"] == found["memorymark_runs_running",] == 0
    assert found["memorymark_runs_ended_last_hour", "finished"] == 0
    assert not [key for key in found if key[0] in ("memorymark_attempts_last_day", "memorymark_run_duration")]
    assert found["memorymark_estimates_ended_last_hour", "finished"] == 1
    assert found["memorymark_estimates_queued",] + found["memorymark_estimates_running",] == 2


def test_no_device_is_blamed_for_an_estimate_that_waits():
    make_card()
    Run.objects.filter(pk=make_estimate().pk).update(created_at=ago(900))
    assert run_left_lying() is None


def test_that_an_estimate_is_left_lying_is_said_with_the_remedy():
    make_card()
    run = make_estimate()
    Run.objects.filter(pk=run.pk).update(created_at=ago(900))
    check = readiness().checks["queue"]
    assert not check.ok
    assert "An estimate has waited" in check.message
    assert "manage.py worker" in check.message


def test_one_that_waits_behind_another_is_not_left_lying():
    Run.objects.filter(pk=make_estimate().pk).update(created_at=ago(900))
    make_estimate()
    services.estimate_claim(owner="lab:1")
    Run.objects.filter(state=State.QUEUED).update(created_at=ago(900))
    assert estimate_left_lying() is None
    Attempt.objects.update(ended_at=ago(500))
    assert estimate_left_lying() is not None


def test_the_devices_on_the_home_page_show_none_of_them(alice_client):
    make_card()
    make_claimed_estimate()
    assert "run " not in alice_client.get("/devices/").content.decode()


def test_the_classic_health_and_models_know_nothing_of_them(client):
    before = client.get("/models").json()
    make_claimed_estimate()
    assert client.get("/models").json() == before


def test_the_estimate_beside_a_measurement_goes_into_columns_of_its_own():
    estimate = estimate_of_card({"id": "a10", "name": "NVIDIA A10", "total_bytes": 10, "calibrated": True}, 9, 8)
    graded = {**make_result().to_dict(), "estimate": estimate, "estimate_error": {"peak": 0.01, "boundary": 0.125}}
    columns = measured_columns(Measured.from_dict(graded))
    assert (columns["largest_batch_size"], columns["estimated_largest_batch_size"]) == (8, 9)
    assert (columns["estimate_peak_error"], columns["estimate_boundary_error"]) == (0.01, 0.125)
    assert (columns["device_name"], columns["gpu"]) == ("Test CPU", "a10")


@pytest.mark.parametrize("estimate", [None, {}, {"gpu": None}, {"gpu": {"id": "a10"}}])
def test_a_measurement_is_kept_whatever_its_estimate_looks_like(estimate):
    columns = measured_columns(
        Measured.from_dict({**make_result().to_dict(), "estimate": estimate, "estimate_error": {"peak": "much"}})
    )
    assert columns["largest_batch_size"] == 8
    assert columns.get("estimate_peak_error") is None
