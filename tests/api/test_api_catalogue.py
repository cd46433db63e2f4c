"""What the API offers: models, the schema of a run, cards and their prices."""

import datetime as dt
from dataclasses import fields
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from analysis.api.run_bodies import run_schema
from analysis.models import GpuPrice
from engine.errors import SpecError
from engine.estimate.gpus import gpus
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec

BODIES: list[dict[str, Any]] = [
    {"model": "bert"},
    {"model": "bert", "device": "cuda:3", "precision": "bf16", "sequence_length": 512},
    {"model": "bert", "sequence_length": 513},
    {"model": "vit_b_16", "image_size": 240},
    {"model": "vit_b_16", "image_size": 241},
    {"model": "gpt2", "optimizer": "adam"},
    {"model": "gpt2", "device": "tpu"},
    {"model": "gpt2", "max_batch_size": 0},
    {"model": "gpt2", "max_batch_size": True},
    {"model": "gpt2", "time_budget_seconds": 0.5},
    {"model": "gpt2", "memory_limit_bytes": "24GiB"},
    {"model": "gpt2", "soak_steps": None},
    {"model": "gpt2", "colour": "red"},
    {"optimizer": "sgd"},
]


GIVEN: list[dict[str, Any]] = [
    *({"image_size": 224}, {"sequence_length": 64}, {"gradient_checkpointing": True}, {"frozen_blocks": 1}),
    *({"channels_last": True}, {"sequences": "packed"}, {"mode": "eval"}, {"pretrained": True}, {"lora_rank": 8}),
    *({"load_in_4bit": True, "lora_rank": 8}, {"attention": "eager"}, {"attention": "sdpa"}, {"torch_compile": True}),
]


def is_allowed_by_the_engine(body: dict[str, Any]) -> bool:
    try:
        RunSpec.from_dict(body)
    except SpecError:
        return False
    return True


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_the_schema_allows_what_the_engine_allows(body: dict[str, Any]) -> None:
    assert Draft202012Validator(run_schema()).is_valid(body) == is_allowed_by_the_engine(body)


def test_the_schema_allows_of_every_model_the_settings_that_the_engine_allows() -> None:
    validator = Draft202012Validator(run_schema())
    bodies = [{"model": model, "device": "cpu", **given} for model in WORKLOADS for given in GIVEN]
    assert [body for body in bodies if validator.is_valid(body) != is_allowed_by_the_engine(body)] == []


def test_the_schema_is_one_and_says_what_each_field_is() -> None:
    schema = run_schema()
    Draft202012Validator.check_schema(schema)
    assert {field.name for field in fields(RunSpec)} < set(schema["properties"])
    assert all(described["description"] for described in schema["properties"].values())


@pytest.mark.parametrize(
    ("body", "is_allowed"),
    [
        ({"kind": "estimate", "gpu": "a10"}, True),
        ({"kind": "estimate", "gpu": "voodoo-2"}, False),
        ({"kind": "estimate", "device": "cuda"}, False),
        ({"gpu": "a10"}, False),
        ({"device_class": "A100", "priority": -1, "accepts_shared_device": True}, True),
        ({"priority": 2}, False),
    ],
)
def test_the_schema_knows_the_queue_and_estimates(body: dict[str, Any], is_allowed: bool) -> None:
    assert Draft202012Validator(run_schema()).is_valid({"model": "bert", **body}) == is_allowed


def test_the_schema_is_answered(alice_client: Client) -> None:
    answer = alice_client.get("/api/v1/settings/").json()
    assert (answer["required"], answer["properties"]["max_batch_size"]["x-unit"]) == (["model"], "samples")


def test_every_model_says_which_settings_it_takes(alice_client: Client) -> None:
    answer = alice_client.get("/api/v1/models/").json()["results"]
    of = {model["id"]: model for model in answer}
    assert list(of) == list(WORKLOADS)
    assert "sequence_length" in of["bert"]["settings"]
    assert "gradient_checkpointing" in of["resnet"]["settings"]
    assert "gradient_checkpointing" not in of["retinanet-resnet50"]["settings"]
    assert of["vit_b_16"]["input"] == {"minimum": 32, "maximum": 1024, "default": 224, "multipleOf": 16}


def test_a_card_has_the_price_of_the_lab_before_that_of_the_catalogue(alice_client: Client) -> None:
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=0.25, source="our contract", valid_from=dt.date(2026, 11, 1))
    cards = {card["id"]: card for card in alice_client.get("/api/v1/gpus/").json()["results"]}
    own = {"per_hour_usd": 0.25, "source": "our contract", "date": "2026-11-01", "is_own": True}
    assert (set(cards), cards["a10"]["price"]) == (set(gpus()), own)
    listed = next(gpu for gpu in gpus().values() if gpu.price_per_hour_usd is not None and gpu.id != "a10")
    assert cards[listed.id]["price"]["is_own"] is False
    assert cards[listed.id]["total_bytes"] == listed.total_bytes
