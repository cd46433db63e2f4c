"""A validation counts as a measurement nowhere; what to change is estimated for the same place, and measured."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.accounts.quotas import QuotaExceededError
from analysis.models import MatrixCell, Quota, Run, State
from analysis.runs import services
from analysis.runs.earlier.fits import fit_under_way
from analysis.runs.earlier.reuse import LOOKED_THROUGH_MAX, measured_alone
from analysis.runs.earlier.what_to_change import changes_found, measured_variants, newest_changes, spec_of
from analysis.runs.kinds import rules_of
from analysis.runs.queue.forecast import queue_positions, typical_seconds
from analysis.runs.queue.placement import Placement
from analysis.runs.services import run_again, runs_set_baseline
from analysis.workers.supervisor import engine_arguments, supervise
from engine.errors import SpecError
from engine.estimate.gpus import find
from engine.estimate.what_to_change import Evaluated, Scope, what_to_change
from engine.settings.spec import RunSpec
from tests.engine.synthetic_estimates import evaluated as evaluated_as
from tests.factories import (
    make_claimed_estimate,
    make_claimed_validation,
    make_device,
    make_estimate,
    make_measured_run,
    make_run,
    make_spec,
    make_user,
    make_validation,
)
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE, estimate_of

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


BF16, QLORA = "bf16 precision", "LoRA rank 16 + 4-bit base weights"


def evaluated(spec: RunSpec) -> Evaluated:
    sample = 10 if spec.precision == "bf16" else 30
    return evaluated_as(1000, 0.1, 1000 // sample, 900 // sample, lambda size: size * sample)


def answered(gpu: str = "cpu", **spec: object) -> Run:
    run = make_claimed_estimate(gpu, what_to_change=Scope.SINGLE, **spec)
    found = what_to_change(run.run_spec, 64, evaluated, Scope.SINGLE)
    made = estimate_of(run.run_spec, find("a10"))
    result = {"estimates": [{**made, "gpu": {**made["gpu"], "id": gpu}}], "what_to_change": found.to_dict()}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    run.refresh_from_db()
    return run


def test_it_is_estimated_where_the_run_was_measured() -> None:
    measured = make_measured_run(make_device())
    run = services.changes_estimate(run=measured, batch_size=64, scope="single", requested_by=make_user("ann"))
    place = rules_of(measured).place(measured)
    assert place is not None
    assert (run.gpu, run.spec["what_to_change"], run.current_batch_size) == (place.gpu, "single", 64)
    assert run.spec["memory_limit_bytes"] == measured.spec["memory_limit_bytes"]


def test_a_waiting_run_without_a_device_is_refused() -> None:
    with pytest.raises(SpecError, match="run: "):
        services.changes_estimate(run=make_run(), batch_size=64, scope="single", requested_by=make_user("ann"))


@pytest.mark.parametrize(
    ("asked", "passed"), [({"what_to_change": "grid"}, "grid"), ({"frontier": [128, 64]}, [64, 128])], ids=str
)
def test_what_is_asked_beside_the_estimate_is_passed_to_the_engine(asked: dict[str, Any], passed: object) -> None:
    arguments = engine_arguments(make_claimed_estimate("a10", **asked))
    spec = json.loads(arguments[arguments.index("--spec") + 1])
    assert (arguments[0], spec["gpu"], spec[next(iter(asked))]) == ("estimate", "a10", passed)


def test_repeating_it_requests_the_same() -> None:
    again = services.run_again(run=answered(), requested_by=None)
    assert (again.gpu, again.spec["what_to_change"]) == ("cpu", "single")
    sizes = services.run_again(run=make_estimate(frontier=[64, 128]), requested_by=None)
    assert sizes.spec["frontier"] == [64, 128]


def test_the_ticked_variants_become_runs() -> None:
    run, device = answered(), make_device()
    started = services.changes_measure(
        run=run, labels=["as requested", BF16], place=Placement(device=device), requested_by=make_user("ann")
    )
    assert [(each.precision, each.current_batch_size) for each in started] == [("fp32", 64), ("bf16", 64)]


def test_lora_with_4_bits_is_ticked_as_one_and_measured_with_both_settings() -> None:
    (started,) = services.changes_measure(
        run=answered(), labels=[QLORA], place=Placement(device=make_device()), requested_by=make_user("ann")
    )
    assert (started.spec["lora_rank"], started.spec["load_in_4bit"]) == (16, True)


@pytest.mark.parametrize(
    "labels",
    [[], ["nonsense"], [BF16, "nonsense"]],
)
def test_an_unknown_variant_starts_nothing(labels: list[str]) -> None:
    run, device = answered(), make_device()
    with pytest.raises(SpecError, match="variants: "):
        services.changes_measure(run=run, labels=labels, place=Placement(device=device), requested_by=make_user("ann"))
    assert not Run.objects.measuring().exists()


def test_a_quota_for_fewer_starts_none_of_them() -> None:
    run, device, ann = answered(), make_device(), make_user("ann")
    Quota.objects.create(user=ann, runs_waiting_max=1)
    with pytest.raises(QuotaExceededError, match="bf16 precision"):
        services.changes_measure(
            run=run, labels=["as requested", BF16], place=Placement(device=device), requested_by=ann
        )
    assert not Run.objects.measuring().exists()


def test_the_newest_answer_of_equal_settings_is_found_again() -> None:
    measured = make_measured_run(make_device(), memory_limit_bytes=None)
    assert newest_changes(measured) is None
    answer = answered(model=measured.model)
    other = answered(model=measured.model, optimizer="sgd")
    assert newest_changes(measured) == answer
    assert newest_changes(other) is None


def test_what_was_not_measured_has_no_gain() -> None:
    run = answered()
    found = changes_found(run)
    assert found is not None
    assert measured_variants(run, found, None) == {}


def test_what_was_measured_is_read_once_for_each_precision_and_optimizer() -> None:
    run = answered()
    make_measured_run(make_device())
    found = changes_found(run)
    assert found is not None
    specs = [spec_of(run.run_spec, variant) for variant in found.variants]
    groups = len({(spec.precision, spec.optimizer) for spec in specs})
    assert groups < len(specs)
    with CaptureQueriesContext(connection) as queries:
        measured_variants(run, found, make_user("ann"))
    lists = [query for query in queries if f"LIMIT {LOOKED_THROUGH_MAX}" in query["sql"]]
    assert len(lists) == groups
