"""What a sender on another machine damages is refused, or stored: whatever is stored, every page of it opens.

MEMORYMARK_FUZZ_DOCUMENTS=20000 MEMORYMARK_FUZZ_STREAMS=2000 python -m pytest -n 0 -s -m slow \
    tests/security/test_damaged_reports.py      more than in the suite; MEMORYMARK_FUZZ_SEED draws others
"""

import json
import os
from typing import Any

import pytest

from analysis.permissions import MANAGER
from memorymark_site.env import Rate
from tests.engine.honest_worker import HonestWorker, document_of
from tests.factories import make_device, make_user
from tests.factories.reports import SendingClient, make_events, make_probes, make_reported_run, make_run_key
from tests.security.damaged_reports import (
    Pages,
    Seen,
    base_documents,
    damage_stored,
    named,
    send_documents,
    send_streams,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DOCUMENTS = int(os.environ.get("MEMORYMARK_FUZZ_DOCUMENTS", "80"))
STREAMS = int(os.environ.get("MEMORYMARK_FUZZ_STREAMS", "8"))
ROWS = int(os.environ.get("MEMORYMARK_FUZZ_ROWS", "2"))
"""For each of the base documents."""
SEED = int(os.environ.get("MEMORYMARK_FUZZ_SEED", "24"))


@pytest.fixture
def sender(settings: Any) -> SendingClient:
    settings.THROTTLES = dict.fromkeys(settings.THROTTLES, Rate(10**9, 60.0))
    return SendingClient(make_user("manager", MANAGER), raises_errors=False)


@pytest.fixture
def pages(sender: SendingClient) -> Pages:
    owner = sender.token.owner
    make_device(device="cpu")
    return Pages(owner, make_reported_run(owner), Seen())


def test_each_address_that_is_opened_is_one_of_the_portal(sender, pages):
    document = named(json.dumps(document_of(HonestWorker(90))).encode())
    answer = sender.send_result(json.dumps({"exit_status": 0, "result": document}).encode())
    pages.open_run(answer.json()["id"], "nothing is damaged")
    pages.open_lists("nothing is damaged")
    (none_yet,) = pages.seen.refused  # a report recommends nothing here until it is trusted
    assert none_yet.startswith("/api/v1/recommendation/?model=bert-tiny&device=cpu&current_batch_size=4: 404 ")
    assert pages.seen.broken == []


def test_no_damaged_document_breaks_a_page(sender, pages, record_property):
    send_documents(sender, pages, SEED, DOCUMENTS)
    print(pages.seen)
    record_property("documents", str(pages.seen))
    assert pages.seen.broken == []


def test_no_damaged_stream_of_events_breaks_a_page(sender, pages, record_property):
    send_streams(sender, pages, SEED, STREAMS)
    print(pages.seen)
    record_property("streams", str(pages.seen))
    assert pages.seen.broken == []


def test_no_damaged_row_of_an_earlier_version_breaks_a_page(sender, pages, record_property):
    for number, body in enumerate(base_documents()):
        document = named(body)
        answer = sender.send_result(json.dumps({"exit_status": 0, "result": document}).encode())
        assert answer.status_code == 201, answer.content
        damage_stored(answer.json()["id"], pages, SEED + number, ROWS)
    run_id = sender.begin(key := make_run_key()).json()["id"]
    estimate = next(event for event in (named(body).get("estimate") for body in base_documents()) if event)
    events = [*make_events(make_probes()[:2]), {"event": "estimate", "seconds": 1.0, "estimate": estimate}]
    timing = {"event": "timing", "round": 6, "batch_sizes": [4, 8], "stage": "selection", "seconds_left": 9.0}
    phases = [{"event": "phase", "seconds": 1.0, "phase": name} for name in ("estimating", "preparing", "timing")]
    assert sender.send_events(key, 0, *events, *phases, timing).status_code == 200
    damage_stored(run_id, pages, SEED, 4 * ROWS)
    print(pages.seen)
    record_property("rows", str(pages.seen))
    assert pages.seen.broken == []
