"""Each route takes a body as large as it promises, and not a byte more."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from engine.speed.comparison import TimedBlock
from tests.engine.honest_worker import HonestWorker, document_of
from tests.factories.reports import HOST, STARTED_AT, SendingClient, make_run_key

pytestmark = pytest.mark.django_db
MIB = 1024 * 1024


class ManySteps(HonestWorker):
    """Steps so short that thousands of them fit into a block: their times are most of the document."""

    def __init__(self) -> None:
        super().__init__(528, step_seconds=lambda size: 1e-4 + 1e-6 * size)

    def time(self, batch_size: int, **limits: Any) -> TimedBlock:
        blocks = [super(ManySteps, self).time(batch_size, **limits) for _ in range(300)]
        steps = tuple(seconds for block in blocks for seconds in block.step_seconds)
        return replace(blocks[0], step_seconds=steps, wall_seconds=max(sum(steps), limits["block_seconds"]))


def honest_document(size: int) -> bytes:
    """A result file of at least this size: each number on a line of its own, indented until it is that large."""
    result = document_of(ManySteps())
    result["environment"] |= {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT}
    content = {"exit_status": 0, "result": result}
    plain, deep = (len(json.dumps(content, indent=indent)) for indent in (0, 1))
    return json.dumps(content, indent=(size - plain) // (deep - plain) + 1).encode()


@pytest.mark.parametrize("size", [1_100_000, 3_800_000])
def test_a_result_of_up_to_four_mebibytes_is_stored(sender: SendingClient, alice_client: Client, size: int) -> None:
    document = honest_document(size)
    assert size <= len(document) < 4 * MIB
    answer = sender.send_result(document)
    assert answer.status_code == 201, answer.content[:500]
    run = Run.objects.get()
    assert run.largest_batch_size == 528
    assert alice_client.get(f"/runs/{run.pk}/").status_code == 200


def test_a_larger_result_is_refused_with_the_limit(sender: SendingClient) -> None:
    answer = sender.send_result(honest_document(4 * MIB))
    assert answer.status_code == 413
    assert "4,194,304" in answer.json()["detail"]
    assert not Run.all_runs.exists()


@pytest.mark.parametrize("size", [1_100_000, 3_800_000])
def test_other_routes_take_no_more_than_before_although_one_takes_four_mebibytes(
    sender: SendingClient, size: int
) -> None:
    sender.begin(key := make_run_key())
    events = sender.send_events(key, 0, {"event": "log", "message": "x" * size})
    begun = sender.begin(make_run_key(), engine_version="x" * size)
    known = sender.query_known(["0" * size])
    assert [answer.status_code for answer in (events, begun, known)] == [413] * 3


@pytest.mark.parametrize("size", [70_000, 1_040_000])
def test_a_body_below_what_the_server_reads_is_refused_above_its_route_s_own_limit(
    sender: SendingClient, size: int
) -> None:
    answer = sender.begin(make_run_key(), engine_version="x" * size)
    assert answer.status_code == 413
    assert "65,536" in answer.json()["detail"]
