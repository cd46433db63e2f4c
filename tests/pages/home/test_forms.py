"""The form asks, also for a config and ranks; `engine.RunSpec` decides."""

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Device, Run
from analysis.pages.home.first_values import first_values, values_of
from analysis.pages.home.forms import RunForm
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.settings.catalog import WORKLOADS
from engine.settings.setting import Role
from engine.settings.spec import SETTINGS
from engine.text.units import GIB
from tests.engine.settings.catalog.hostile_configs import LLAMA
from tests.factories import make_card, make_device, make_run, make_spec
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def submitted(on: Device, **values: Any) -> RunForm:
    defaults = {
        "model": "bert",
        "device": on.pk,
        "precision": "fp32",
        "optimizer": "adamw",
        "mode": "train",
        "current_batch_size": "16",
    }
    return RunForm({**defaults, **values}, devices=Device.objects.all())


def test_what_is_left_empty_takes_the_default() -> None:
    form = submitted(make_device())
    assert form.is_valid()
    assert (form.spec.sequence_length, form.spec.memory_limit_bytes, form.spec.runs_per_year) == (None, None, 100)


def test_the_spec_names_the_chosen_device() -> None:
    form = submitted(make_device(device="cuda:1", kind="cuda"))
    assert form.is_valid()
    assert form.spec.device == "cuda:1"


def test_a_memory_limit_is_read_with_its_unit() -> None:
    form = submitted(make_device(), memory_limit_bytes="24GiB")
    assert form.is_valid()
    assert form.spec.memory_limit_bytes == 24 * GIB


def test_the_memory_to_leave_free_is_asked_in_percent() -> None:
    device = make_device()
    form = submitted(device, reserve_percent="7")
    assert form.is_valid()
    assert form.spec.reserve_fraction == 0.07
    assert submitted(device, reserve_percent="51").errors.keys() == {"reserve_percent"}


def test_the_memory_to_leave_free_may_be_a_size() -> None:
    device = make_device()
    form = submitted(device, reserve_bytes="10GiB")
    assert form.is_valid()
    assert form.spec.reserve_bytes == 10 * GIB
    refused = submitted(device, reserve_bytes="24GiB", memory_limit_bytes="24GiB")
    assert refused.errors == {"reserve_bytes": ["24.0 GiB must be below the 24.0 GiB that the training may take"]}


def test_without_a_price_the_one_of_the_device_that_takes_it_stands_in() -> None:
    form = submitted(make_device(price_per_hour_usd=1.29))
    assert form.is_valid()
    assert form.submission()["uses_device_price"]


def test_a_price_that_was_typed_stands_before_the_devices_own() -> None:
    form = submitted(make_device(price_per_hour_usd=1.29), price_per_hour_usd="2")
    assert form.is_valid()
    assert (form.spec.price_per_hour_usd, form.submission()["uses_device_price"]) == (2, False)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("model", "llama", "not one of the available choices"),
        ("precision", "fp8", "not one of the available choices"),
        ("device", "99", "not one of the available choices"),
        ("current_batch_size", "0", "from 1 to"),
        ("current_batch_size", "many", "whole number"),
        ("sequence_length", "5000", "bert takes 1 to 512"),
        ("image_size", "224", "has no such setting"),
        ("memory_limit_bytes", "lots", "is not a size"),
        ("memory_limit_bytes", "64MiB", "is below what bert"),
        ("price_per_hour_usd", "nan", "Enter a number"),
        ("runs_per_year", "1.5", "whole number"),
        ("time_budget_seconds", "0", "out of range"),
    ],
)
def test_an_objection_stands_beside_its_field(field: str, value: str, expected: str) -> None:
    form = submitted(make_device(), **{field: value})
    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert expected in form.errors[field][0]


def test_the_field_is_not_named_twice() -> None:
    form = submitted(make_device(), sequence_length="5000")
    assert form.errors["sequence_length"] == ["bert takes 1 to 512"]


def test_a_setting_that_the_model_lacks_is_refused() -> None:
    form = submitted(make_device(), model="retinanet-resnet50", gradient_checkpointing="on")
    assert "has no gradient checkpointing" in form.errors["gradient_checkpointing"][0]


def test_every_offered_model_can_be_chosen() -> None:
    device = make_device()
    assert [model for model in WORKLOADS if not submitted(device, model=model).is_valid()] == []


def test_a_host_without_accelerator_is_offered_a_rehearsal() -> None:
    values = first_values([make_device(kind="cpu")])
    assert values == {"model": "bert-tiny", "memory_limit_bytes": "512MiB", "suggested_limit": "512MiB"}


UNTOUCHED = {"memory_limit_bytes": "512MiB", "suggested_limit": "512MiB"}


def test_a_rehearsal_keeps_the_limit_that_was_suggested_for_it() -> None:
    form = submitted(make_device(), model="bert-tiny", **UNTOUCHED)
    assert form.is_valid()
    assert form.spec.memory_limit_bytes == GIB // 2


def test_an_estimate_has_no_limit_that_nobody_chose() -> None:
    form = submitted(make_device(), kind="estimate", **UNTOUCHED)
    assert form.is_valid(), form.errors
    assert form.spec.memory_limit_bytes is None


def test_an_estimate_keeps_a_limit_that_was_typed() -> None:
    device = make_device()
    typed = submitted(device, kind="estimate", **UNTOUCHED | {"memory_limit_bytes": "24GiB"})
    retyped = submitted(device, kind="estimate", model="bert-tiny", **UNTOUCHED | {"suggested_limit": ""})
    assert typed.is_valid()
    assert retyped.is_valid()
    assert [form.spec.memory_limit_bytes for form in (typed, retyped)] == [24 * GIB, GIB // 2]


def test_a_suggested_limit_gives_way_to_a_model_that_needs_more() -> None:
    form = submitted(make_device(), model="bert", **UNTOUCHED)
    assert form.is_valid(), form.errors
    assert (form.spec.memory_limit_bytes, form.is_limit_dropped) == (None, True)


def test_a_rehearsal_that_becomes_an_estimate_leaves_its_limit_behind() -> None:
    device = make_device()
    rehearsal, chosen = (make_run(device, memory_limit_bytes=limit) for limit in (GIB // 2, GIB))
    assert "memory_limit_bytes" not in values_of(rehearsal, "estimate")
    assert values_of(rehearsal)["suggested_limit"] == "512MiB"
    assert values_of(chosen, "estimate")["memory_limit_bytes"] == "1GiB"


def test_a_host_with_an_accelerator_is_offered_the_real_thing() -> None:
    devices = [make_device(device="cuda:0", kind="cuda"), make_device(device="cpu", kind="cpu")]
    assert first_values(devices) == {"model": "bert"}


def test_a_stored_run_fills_the_form_with_what_it_ran() -> None:
    given = {"current_batch_size": 3, "sequence_length": 64, "reserve_fraction": 0.07, "reserve_bytes": GIB}
    run = make_run(memory_limit_bytes=2 * GIB, **given)
    values = values_of(run)
    assert (values["device"], values["memory_limit_bytes"], values["sequence_length"]) == (
        str(run.requested_device_id),
        "2GiB",
        64,
    )
    form = submitted(run.requested_device, **{name: value for name, value in values.items() if value is not False})
    assert form.is_valid()
    assert form.spec == run.run_spec


def test_any_of_a_kind_and_of_a_class_is_offered_where_there_are_several() -> None:
    for number in range(3):
        make_card(number)
    make_card(3, name="NVIDIA H100")
    form = RunForm(devices=Device.objects.best_first())
    labels = [label for _, label in form.fields["device"].choices]
    assert labels[:2] == ["Any GPU (4)", "Any NVIDIA A100-SXM4-80GB (3)"]
    assert len(labels) == 2 + 4


def test_one_device_is_offered_once() -> None:
    make_card()
    form = RunForm(devices=Device.objects.best_first())
    assert [label for _, label in form.fields["device"].choices] == ["A100-SXM4-80GB · lab cuda:0"]


def test_a_class_that_is_chosen_is_where_the_run_goes() -> None:
    first, _ = make_card(0), make_card(1)
    form = submitted(first, device="any cuda NVIDIA A100-SXM4-80GB", priority="-1", accepts_shared_device="on")
    assert form.is_valid()
    asked = form.submission()
    assert asked["place"] == Placement(kind="cuda", device_class="NVIDIA A100-SXM4-80GB")
    assert (asked["priority"], asked["accepts_shared_device"], asked["spec"].device) == (-1, True, "cuda")


def test_the_form_of_a_run_of_any_kind_asks_for_any_again() -> None:
    make_card(0), make_card(1)
    run = services.run_create(spec=make_spec(), place=Placement(kind="cuda"))
    assert values_of(run)["device"] == "any cuda"


def test_a_topic_is_folded_until_one_of_its_settings_differs_from_its_default() -> None:
    """Whoever repeats a run sees what it set; whoever begins sees what people change most."""
    fresh, changed = (RunForm(initial=initial, devices=()) for initial in ({}, {"lora_dropout": 0.1, "priority": 1}))
    assert not fresh.more_is_open
    assert [group.topic.title for group in changed.folded_groups if group.is_open] == [
        "LoRA in detail, 8 bits",
        "Search and queue",
    ]
    assert changed.more_is_open


def test_every_setting_stands_in_the_form_once() -> None:
    form = RunForm(devices=())
    rows = [form.common_fields, *(group.fields for group in form.folded_groups)]
    shown = [each.field.name for fields in rows for each in fields]
    assert len(shown) == len(set(shown))
    assert {name for name in form.fields if SETTINGS.get(name) and SETTINGS[name].role is Role.TRAINING} <= set(shown)


def test_a_pasted_config_starts_a_run_of_it(alice_client: Client) -> None:
    given = {"model": "config", "config": json.dumps(LLAMA), "task": "text-generation"}
    response = alice_client.post("/runs/new/", form_data(make_device(), **given))
    run = Run.objects.get()
    assert (response.status_code, response.url) == (302, run.get_absolute_url())
    assert run.model.startswith("config-")
    text = alice_client.get(f"/?from={run.pk}", headers={"accept": "text/html"}).content.decode()
    assert '<option value="config" selected>' in text
    assert "&quot;model_type&quot;:&quot;llama&quot;" in text


def test_an_estimate_of_a_pasted_config_is_queued(alice_client: Client) -> None:
    given = {
        "model": "config",
        "config": json.dumps(LLAMA),
        "task": "text-generation",
        "kind": "estimate",
        "gpu": "a10",
    }
    assert alice_client.post("/runs/new/", form_data(make_device(), **given)).status_code == 302
    assert Run.objects.get().spec["task"] == "text-generation"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"config": "{"}, "is not valid JSON"),
        ({"config": ""}, "is required with the model config"),
        ({"config": json.dumps({**LLAMA, "auto_map": {"a": "b"}})}, "names code outside of transformers"),
        ({"config": "x" * 70_000}, "at most 65536 characters"),
    ],
)
def test_a_config_that_is_refused_is_named_at_its_field(alice_client: Client, given: Any, said: str) -> None:
    values = {"model": "config", "task": "text-generation", **given}
    response = alice_client.post("/runs/new/", form_data(make_device(), **values))
    assert response.status_code == 422
    assert said in response.content.decode().replace("65,536", "65536")
    assert not Run.objects.exists()


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
