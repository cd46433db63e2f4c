"""`manage.py estimate_catalogue` fills the queue with what is not stored; `decide_again` renews conclusions."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from analysis.models import AuditEntry, Run, State
from engine import __version__
from engine.questions.kinds import answered
from engine.settings.catalog import workload_ids
from tests.engine.questions.answers.answers import originals
from tests.factories import make_device, make_measured_run
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
    text = said(capsys, "--models", "bert", "--gpus", "t4", "a10", "--precisions", "tf32")
    assert "impossible: bert tf32 on t4: precision" in text
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


def test_results_say_what_today_s_rules_say_and_what_cannot_be_read_stays() -> None:
    document, damaged = originals()["bert_tiny"], {"schema": 1, "spec": {}}
    device = make_device()
    renewed, kept = make_measured_run(device), make_measured_run(device)
    Run.objects.filter(pk=renewed.pk).update(result={**document, "waste": None}, largest_batch_size=7)
    Run.objects.filter(pk=kept.pk).update(result=damaged)
    out, errors = StringIO(), StringIO()
    for expected in ("1 results renewed, 1 could not be read.", "0 results renewed, 1 could not be read."):
        call_command("decide_again", stdout=out, stderr=errors)
        assert expected in out.getvalue()
    run = Run.objects.get(pk=renewed.pk)
    assert run.result == answered(document)
    assert run.largest_batch_size == document["boundary"]["largest_batch_size"]
    assert Run.objects.get(pk=kept.pk).result == damaged
    assert f"Run {kept.pk} stays as it is" in errors.getvalue()
    assert AuditEntry.objects.filter(action="run.decide_again").count() == 1


def test_what_a_result_of_an_earlier_build_said_of_its_starts_stays() -> None:
    document, run = originals()["tune_speed"], make_measured_run(make_device())
    note = "a checkpoint was saved"
    document = {**document, "speedup": 7.0, "boundary": {**document["boundary"], "note": note}}
    Run.objects.filter(pk=run.pk).update(result=document, kind="command", printed_headline="", decided_by="")
    call_command("decide_again", stdout=StringIO())
    again = Run.objects.get(pk=run.pk)
    assert (again.result or {})["boundary"]["note"] == note
    assert (again.printed_headline[:4], again.decided_by) == ("Use ", "(an earlier build)")


def test_the_page_shows_what_was_said_when_the_result_was_stored_where_today_s_rules_say_otherwise(
    alice_client: Client,
) -> None:
    run = make_measured_run(make_device())
    page, then = f"/runs/{run.pk}/", "By the rules of that day MemoryMark"
    assert (run.printed_headline[-1:], run.decided_by) == (".", __version__)
    in_other_words = run.printed_headline.replace("batch size 16", "the default 16").replace("your", "today's")
    for same in (run.printed_headline, in_other_words):
        Run.objects.filter(pk=run.pk).update(printed_headline=same)
        assert then not in alice_client.get(page).content.decode()
    Run.objects.filter(pk=run.pk).update(printed_headline="Use batch size 7.", decided_by="0.4.9")
    assert f"{then} 0.4.9 said: Use batch size 7." in alice_client.get(page).content.decode()
