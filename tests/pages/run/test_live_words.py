"""What a live page says first: what is going on, one rounded time, how to be notified."""

import time

import pytest
from django.test import Client

from analysis.models import Run, RunKind
from analysis.runs import services
from tests.factories import make_claimed_run
from tests.factories.pages import page, words

pytestmark = pytest.mark.django_db


def test_the_title_says_what_is_going_on_and_one_time_is_left(alice_client: Client) -> None:
    run = make_claimed_run()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="timing")
    progress = {"round": 4, "rounds_expected": 9, "ends_at": time.time() + 190}
    services.progress_set(run_id=run.pk, token=run.token, progress=progress)
    html = page(alice_client, run)
    text = words(html)
    assert "<h1>Finding the batch size of BERT tiny</h1>" in html
    assert "About 3 min left" in text
    assert "round 4 of about 9" in text
    assert text.count(" left") == 1


@pytest.mark.parametrize(
    ("kind", "spec", "title"),
    [
        (RunKind.COMMAND, {}, "Finding the batch size of "),
        (RunKind.MEASUREMENT, {"check_batch_size": 1_024}, "Checking whether batch 1,024 of BERT tiny fits"),
    ],
)
def test_each_kind_of_run_has_its_title(alice_client: Client, kind: RunKind, spec: dict[str, int], title: str) -> None:
    run = make_claimed_run()
    own = {"command": ["python", "train.py"]} if kind is RunKind.COMMAND else {}
    Run.objects.filter(pk=run.pk).update(kind=kind, spec={**run.spec, **spec, **own})
    assert f"<h1>{title}" in page(alice_client, run)


def test_a_live_page_offers_to_notify(alice_client: Client) -> None:
    html = page(alice_client, make_claimed_run())
    assert "data-notify" in html
    assert 'href="/account/notifications/"' in html
