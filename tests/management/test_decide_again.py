"""`manage.py decide_again`, on results whose conclusions are not today's."""

from io import StringIO

import pytest
from django.core.management import call_command

from analysis.models import AuditEntry, Run
from engine.kinds import answered
from tests.engine.answers.answers import originals
from tests.factories import make_device, make_measured_run

pytestmark = pytest.mark.django_db


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
