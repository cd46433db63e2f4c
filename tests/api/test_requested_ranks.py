"""A model of the catalogue on several ranks is requested as any measurement is, and gets a device for each."""

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.kinds import rules_of
from analysis.runs.queue.claim import DeviceSet
from analysis.workers.supervisor import engine_arguments
from engine.text.units import GIB
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_card, make_device

pytestmark = pytest.mark.django_db
RANKS = {"model": "bert-tiny", "ranks": 2, "strategy": "ddp"}


@pytest.fixture
def cards() -> list[Device]:
    return [make_card(number, uuid=f"GPU-{number}", price_per_hour_usd=1.5) for number in range(3)]


def send(client: Client, path: str = "", **body: Any) -> Any:
    return client.post(f"/api/v1/runs/{path}", json.dumps(body), content_type="application/json")


def requested(client: Client, **body: Any) -> Run:
    answer = send(client, **body)
    assert answer.status_code == 202, answer.content
    return Run.objects.get(pk=answer.json()["id"])


def claimed(first: Device) -> Run:
    found = services.claim_next(device=first, owner="worker")
    run = services.set_claim(wanted=found, owner="worker") if isinstance(found, DeviceSet) else found
    assert run is not None
    return run


def started_with(run: Run) -> TuneSpec:
    """What the engine of a claimed run reads."""
    command, option, spec, *_ = engine_arguments(run)
    assert (command, option) == ("tune", "--spec")
    return TuneSpec.from_dict(json.loads(spec))


def test_each_rank_gets_a_gpu_of_one_host_and_the_run_their_price(alice_client: Client, cards: list[Device]) -> None:
    run = requested(alice_client, **RANKS, precision="bf16")
    assert (run.published_kind, run.model) == ("measurement", "bert-tiny, ddp on 2 ranks")
    assert (run.device_count, run.precision, run.needs_compute_capability) == (2, "bf16", 8.0)
    run = claimed(cards[0])
    spec = started_with(run)
    assert (run.attempts.get().devices, spec.device) == (["cuda:0", "cuda:1"], "cuda")
    assert spec.catalogue == {**RANKS, "precision": "bf16"}
    assert (spec.compare_speed, spec.price_per_hour_usd) == (True, 3.0)


def test_one_gpu_stands_in_for_ranks_at_the_price_of_all(alice_client: Client, cards: list[Device]) -> None:
    body = {"model": "bert-tiny", "strategy": "fsdp", "emulate_ranks": 8, "rank": [0, 7], "device": "cuda:1"}
    run = requested(alice_client, **body)
    assert (run.device_count, run.requested_device) == (1, cards[1])
    spec = started_with(claimed(cards[1]))
    assert ([each.rank for each in spec.emulated_ranks], spec.compare_speed) == ([0, 7], False)
    assert (spec.catalogue or {})["ranks"] == 8
    assert (spec.device, spec.price_per_hour_usd) == ("cuda:0", 12.0)


def test_ranks_on_a_cpu_share_it_and_its_memory(alice_client: Client) -> None:
    cpu = make_device(capacity_bytes=8 * GIB)
    run = requested(alice_client, **RANKS, device="cpu", memory_limit_bytes=GIB, compare_speed=False)
    assert (run.device_count, run.needs_bytes) == (1, 2 * GIB)
    spec = started_with(claimed(cpu))
    assert (spec.device, spec.memory_limit_bytes, spec.compare_speed) == ("cpu", GIB, False)
    refused = send(alice_client, **{**RANKS, "ranks": 4}, device="cpu", memory_limit_bytes=3 * GIB)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/memory_limit_bytes")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"strategy": ""}, "/strategy"),
        ({"ranks": 4}, "/device"),  # no host has four
        ({"device": "cuda:0"}, "/device"),
        ({"emulate_ranks": 2, "rank": [2]}, "/rank"),
        ({"kind": "estimate", "emulate_ranks": 2}, "/emulate_ranks"),
        ({"kind": "race", "compare_speed": True}, "/compare_speed"),
        ({"kind": "race"}, "/ranks"),
    ],
)
def test_what_ranks_cannot_do_is_refused_by_its_field(
    alice_client: Client, cards: list[Device], body: dict[str, Any], pointer: str
) -> None:
    answer = send(alice_client, **{**RANKS, **body})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


def test_a_run_of_ranks_is_repeated_and_cloned_with_changes(alice_client: Client, cards: list[Device]) -> None:
    first = requested(alice_client, **RANKS, price_per_hour_usd=2.0, device_class="A100")
    services.runs_cancel(run_ids=[first.pk])
    again = send(alice_client, f"{first.pk}/retry/").json()
    assert (again["spec"], again["model"]) == (first.spec, first.model)
    clone = Run.objects.get(pk=send(alice_client, f"{first.pk}/clone/", ranks=3, strategy="zero1").json()["id"])
    assert (clone.model, clone.device_count, clone.requested_device_class) == ("bert-tiny, zero1 on 3 ranks", 3, "A100")
    assert (clone.spec["price_per_hour_usd"], clone.uses_device_price) == (6.0, False)
    estimate = send(alice_client, f"{first.pk}/clone/", kind="estimate", gpu="a100-80gb").json()
    assert (estimate["kind"], estimate["spec"]["ranks"], estimate["spec"]["strategy"]) == ("estimate", 2, "ddp")
    single = send(alice_client, f"{first.pk}/clone/", ranks=1, strategy="").json()
    assert (single["model"], single["spec"]["price_per_hour_usd"]) == ("bert-tiny", 2.0)


def test_a_reported_run_of_ranks_is_not_started_here(alice_client: Client, cards: list[Device]) -> None:
    run = requested(alice_client, **RANKS)
    assert run.is_startable
    run.reported_from = "elsewhere"
    assert not run.is_startable
    assert rules_of(run).not_again(run)
