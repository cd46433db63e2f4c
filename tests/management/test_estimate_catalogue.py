"""`manage.py estimate_catalogue`: fills the queue with what is not stored, and goes on where it stopped."""

import pytest
from django.core.management import CommandError, call_command

from analysis.models import Run, State
from engine.catalog import workload_ids
from tests.factories.estimates import make_stored_estimate

pytestmark = pytest.mark.django_db


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("estimate_catalogue", *arguments)
    return capsys.readouterr().out


def test_each_model_and_precision_gets_one_estimate_of_all_gpus_at_low_priority(capsys) -> None:
    text = said(capsys, "--models", "bert", "gpt2")
    assert text.splitlines()[-1] == "4 queued"
    assert set(Run.objects.values_list("gpu", "priority", "requested_by")) == {("all", Run.Priority.LOW, None)}
    assert sorted(Run.objects.values_list("model", "precision")) == [
        *(("bert", "bf16"), ("bert", "fp32"), ("gpt2", "bf16"), ("gpt2", "fp32"))
    ]


def test_what_is_stored_or_waiting_is_left_alone(capsys) -> None:
    make_stored_estimate("all")
    assert said(capsys, "--models", "bert").splitlines()[-1] == "1 queued, 1 stored"
    assert said(capsys, "--models", "bert").splitlines()[-1] == "0 queued, 1 stored, 1 waiting"
    assert Run.objects.count() == 2


def test_a_part_at_a_time_adds_up_to_all(capsys) -> None:
    assert "left for next time" in said(capsys, "--most", "5")
    said(capsys)
    assert Run.objects.count() == 2 * len(workload_ids())


def test_one_that_failed_is_queued_again_only_on_request(capsys) -> None:
    said(capsys, "--models", "bert", "--precisions", "fp32")
    Run.objects.update(state=State.FAILED)
    assert said(capsys, "--models", "bert", "--precisions", "fp32").splitlines()[-1] == "1 failed before, 0 queued"
    assert "1 queued" in said(capsys, "--models", "bert", "--precisions", "fp32", "--retry-failed")


def test_a_gpu_that_cannot_run_it_is_said_and_the_others_are_queued(capsys) -> None:
    text = said(capsys, "--models", "bert", "--gpus", "t4", "a10", "--precisions", "bf16")
    assert "impossible: bert bf16 on t4: precision" in text
    assert Run.objects.get().gpu == "a10"


def test_a_dry_run_queues_nothing(capsys) -> None:
    assert "would queue: bert fp32 on all GPUs" in said(capsys, "--models", "bert", "--dry-run")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--models", "bert", "bort"),
        ("--gpus", "a100"),
        ("--precisions", "fp64"),
        ("--batch-size", "0"),
    ],
)
def test_a_wrong_name_queues_nothing(arguments) -> None:
    with pytest.raises(CommandError):
        call_command("estimate_catalogue", *arguments)
    assert not Run.objects.exists()
