"""The form of the start page takes several ranks, and one device that stands in for them."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Device, Run
from analysis.runs import services
from engine.text.units import GIB
from tests.factories import make_card, make_device

pytestmark = pytest.mark.django_db
FORM = {
    **{"kind": "measurement", "model": "bert-tiny", "precision": "fp32", "optimizer": "adamw"},
    **{"current_batch_size": "16", "ranks": "2", "strategy": "ddp"},
}


@pytest.fixture
def cpu() -> Device:
    return make_device(capacity_bytes=8 * GIB)


def start(client: Client, device: Device | str, **values: Any) -> Any:
    place = device if isinstance(device, str) else str(device.pk)
    return client.post("/runs/new/", {**FORM, "device": place, **values})


def shown(client: Client, address: str) -> Any:
    return client.get(address, headers={"accept": "text/html"})


def test_ranks_on_a_cpu_are_queued_and_their_pages_say_what_they_are(alice_client: Client, cpu: Device) -> None:
    start(alice_client, cpu, memory_limit_bytes="256MiB", limit_only="1")
    run = Run.objects.get()
    assert (run.model, run.device_count, run.spec["compare_speed"]) == ("bert-tiny, ddp on 2 ranks", 1, False)
    for address in (run.get_absolute_url(), "/", "/runs/", "/fleet/"):
        assert "BERT tiny, ddp on 2 ranks" in shown(alice_client, address).content.decode()
    assert "torch.distributed.run" not in alice_client.get(run.get_absolute_url()).content.decode()


def test_gpus_are_chosen_by_their_kind_and_one_alone_is_refused(alice_client: Client) -> None:
    cards = [make_card(number, uuid=f"GPU-{number}") for number in range(2)]
    refused = start(alice_client, cards[0])
    assert (refused.status_code, "2 ranks need one each" in refused.content.decode()) == (422, True)
    start(alice_client, "any cuda")
    assert Run.objects.get().device_count == 2


def test_emulated_ranks_are_a_run_of_one_device_that_says_so(alice_client: Client, cpu: Device) -> None:
    start(alice_client, cpu, ranks="1", emulate_ranks="8", rank="0,7")
    run = Run.objects.get()
    assert (run.model, run.spec["emulate_ranks"], run.spec["rank"]) == ("bert-tiny, ddp on 8 ranks", 8, [0, 7])
    for address in (run.get_absolute_url(), "/runs/"):
        assert "emulated, 2 of 8 ranks" in alice_client.get(address).content.decode()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"strategy": ""}, "strategy"),
        ({"emulate_ranks": "8"}, "emulate_ranks"),
        ({"emulate_ranks": "2", "rank": "x"}, "rank"),
        ({"memory_limit_bytes": "6GiB"}, "memory_limit_bytes"),
        ({"ranks": "4", "memory_limit_bytes": "6GiB"}, "memory_limit_bytes"),  # the default is too much as well
    ],
)
def test_what_is_wrong_stands_at_its_field(
    alice_client: Client, cpu: Device, values: dict[str, str], field: str
) -> None:
    answer = start(alice_client, cpu, **values)
    assert (answer.status_code, [*answer.context["form"].errors]) == (422, [field])


def test_a_run_of_ranks_fills_in_the_form_again(alice_client: Client, cpu: Device) -> None:
    start(alice_client, cpu, ranks="4", emulate_ranks="4", rank="0,3", memory_limit_bytes="256MiB")
    run = Run.objects.get()
    services.runs_cancel(run_ids=[run.pk])
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert f"/?from={run.pk}" in page
    initial = shown(alice_client, f"/?from={run.pk}").context["form"].initial
    kept = {"kind": "measurement", "model": "bert-tiny", "ranks": 4, "strategy": "ddp", "emulate_ranks": 4}
    assert {name: initial[name] for name in kept} == kept
    assert (initial["rank"], initial["memory_limit_bytes"]) == ("0,3", "256MiB")
