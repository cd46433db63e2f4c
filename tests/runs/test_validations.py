"""A validation is queued, claimed and ended like a measurement, and counts as one nowhere."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.test import Client

from analysis.models import MatrixCell, Run, State
from analysis.runs import services
from analysis.runs.earlier.fits import fit_under_way
from analysis.runs.earlier.reuse import measured_alone
from analysis.runs.queue.forecast import queue_positions, typical_seconds
from analysis.runs.services import run_again, runs_set_baseline
from analysis.workers.supervisor import supervise
from engine.errors import SpecError
from tests.factories import make_claimed_validation, make_device, make_run, make_spec, make_validation
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


def ended(mode: str = "ok", **fields) -> Run:
    run = make_claimed_validation(**fields)
    supervise(run, command=[*FAKE_ENGINE, mode], timeouts=QUICK)
    run.refresh_from_db()
    return run


def test_it_waits_for_its_device_in_the_queue_of_measurements():
    device = make_device()
    first, second = make_run(device), make_validation(device)
    assert {pk: turn.position for pk, turn in queue_positions([first, second]).items()} == {first.pk: 1, second.pk: 2}
    assert services.run_claim(device=device, owner="tester").pk == first.pk


def test_the_worker_stores_its_verdict_and_no_batch_size():
    run = ended(precision="bf16")
    assert (run.state, run.verdict, run.exit_status) == (State.FINISHED, "passed", 0)
    assert (run.largest_batch_size, run.current_batch_size, run.device_name) == (None, None, "Fake CPU")
    assert run.result["checks"][1]["text"] == "the gradients of bf16 agree with fp32 within 2 %: passed"


def test_one_that_gives_no_verdict_ends_failed_with_its_reason():
    run = ended("bad_result")
    assert (run.state, run.error_code, run.verdict) == (State.FAILED, "bad_result", "")


def test_it_is_in_no_matrix_and_no_later_run_reuses_it():
    run = ended()
    assert not MatrixCell.objects.exists()
    assert not measured_alone(make_spec(), run.device).exists()
    Run.objects.update(finished_at=F("started_at"))
    assert typical_seconds("bert-tiny") is None


def test_a_question_whether_a_size_fits_does_not_wait_for_a_validation(alice):
    make_validation(requested_by=alice)
    assert fit_under_way(make_spec(device="cpu"), alice) is None


def test_it_is_no_baseline(alice):
    run = ended()
    Run.objects.update(requested_by=alice)
    assert runs_set_baseline(run_ids={run.pk}, by=alice, is_baseline=True).done == 0


def test_the_database_itself_refuses_a_validation_with_a_batch_size_and_a_verdict_of_a_measurement():
    validation, measurement = make_validation(), make_run(make_device("other"))
    for run, columns in ((validation, {"largest_batch_size": 8}), (measurement, {"verdict": "passed"})):
        with pytest.raises(IntegrityError), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**columns)


def test_it_is_repeated_as_a_validation_and_never_timed_again(alice):
    run = ended(precision="bf16")
    again = run_again(run=run, requested_by=alice)
    assert (again.kind, again.spec["check"], again.precision) == (Run.Kind.VALIDATION, "backward", "bf16")
    with pytest.raises(SpecError, match="only a finished measurement"):
        run_again(run=run, requested_by=alice, is_timing_only=True)


def test_it_is_not_compared(alice_client: Client):
    run = ended()
    response = alice_client.get(f"/compare/?ids={run.pk},{make_run(make_device('other')).pk}")
    assert response.status_code == 400
    assert "is a validation, which has no batch size to compare" in response.content.decode()
