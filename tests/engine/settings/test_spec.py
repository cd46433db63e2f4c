"""A RunSpec is right when it exists; what is wrong is named with its field and what is allowed."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import SpecError
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec

WRONG = [
    ({}, "model", "is required"),
    ({"model": "nosuch"}, "model", "such as bert, gpt2, resnet"),
    ({"model": 7}, "model", "must be text"),
    ({"model": "bert", "typo": 1}, "typo", "unknown key; allowed are model, device"),
    ({"model": "bert", "device": "tpu"}, "device", "auto, cuda"),
    ({"model": "bert", "device": "cuda:0; rm -rf"}, "device", "not a device"),
    ({"model": "bert", "precision": "int4"}, "precision", "one of fp32, tf32, bf16, fp16"),
    ({"model": "bert", "precision": "tf32", "device": "cpu"}, "precision", "needs a CUDA GPU"),
    ({"model": "bert", "optimizer": "muon"}, "optimizer", "one of none, sgd, momentum, adam, adamw"),
    ({"model": "bert", "mode": "test"}, "mode", "one of train, eval"),
    ({"model": "bert", "current_batch_size": 0}, "current_batch_size", "from 1 to"),
    ({"model": "bert", "current_batch_size": -3}, "current_batch_size", "from 1 to"),
    ({"model": "bert", "current_batch_size": 10**30}, "current_batch_size", "from 1 to"),
    ({"model": "bert", "current_batch_size": 10**400}, "current_batch_size", "from 1 to"),
    ({"model": "bert", "current_batch_size": "16"}, "current_batch_size", "must be a whole number"),
    ({"model": "bert", "current_batch_size": 1.5}, "current_batch_size", "must be a whole number"),
    ({"model": "bert", "current_batch_size": True}, "current_batch_size", "must be a whole number"),
    ({"model": "bert", "max_batch_size": None}, "max_batch_size", "must be a whole number"),
    ({"model": "bert", "start_batch_size": 9, "max_batch_size": 8}, "start_batch_size", "must not be above"),
    (
        {"model": "bert", "memory_limit_bytes": "1GiB"},
        "memory_limit_bytes",
        "1.6 GiB of weights, gradients and optimizer state",
    ),
    ({"model": "bert", "memory_limit_bytes": "lots"}, "memory_limit_bytes", "24GiB"),
    ({"model": "bert", "memory_limit_bytes": "-4GiB"}, "memory_limit_bytes", "24GiB"),
    ({"model": "bert", "memory_limit_bytes": [4]}, "memory_limit_bytes", "24GiB"),
    ({"model": "bert", "price_per_hour_usd": float("nan")}, "price_per_hour_usd", "from 0 to"),
    ({"model": "bert", "hours_per_run": float("inf")}, "hours_per_run", "from 0 to"),
    ({"model": "bert", "gradient_checkpointing": "yes"}, "gradient_checkpointing", "true or false"),
    ({"model": "bert", "device": "cpu", "expandable_segments": True}, "expandable_segments", "only CUDA's allocator"),
    ({"model": "retinanet-resnet50", "gradient_checkpointing": True}, "gradient_checkpointing", "has no gradient"),
    ({"model": "resnet18", "pretrained": True}, "pretrained", "no pretrained weights"),
    ({"model": "bert", "image_size": 224}, "image_size", "takes sequence_length"),
    ({"model": "resnet", "sequence_length": 128}, "sequence_length", "takes image_size"),
    ({"model": "bert", "sequence_length": 513}, "sequence_length", "takes 1 to 512"),
    ({"model": "vit_b_16", "image_size": 230}, "image_size", "multiples of 16"),
    ([], "spec", "must be a JSON object"),
]


@pytest.mark.parametrize(("data", "field", "expected"), WRONG)
def test_what_is_not_allowed_is_refused_with_its_field_and_what_is(data, field, expected):
    with pytest.raises(SpecError) as raised:
        RunSpec.from_dict(data)
    assert raised.value.field == field
    assert expected in str(raised.value)


def test_a_spec_survives_json():
    spec = RunSpec("bert", precision="bf16", memory_limit_bytes=24 * 2**30, sequence_length=64)
    assert RunSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize(("optimizer", "copies"), [("none", 2), ("sgd", 2), ("momentum", 3), ("adamw", 4)])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_limit_below_weights_gradients_and_optimizer_state_is_refused_before_anything_runs(optimizer, copies, mode):
    held = copies * 4 * WORKLOADS["bert-tiny"].parameter_count
    settings = {"optimizer": optimizer, "mode": mode}
    assert RunSpec("bert-tiny", memory_limit_bytes=held, **settings).fixed_bytes == held
    with pytest.raises(SpecError, match=f"{held / 2**20:.1f} MiB of weights, gradients"):
        RunSpec("bert-tiny", memory_limit_bytes=held - 1, **settings)


def test_a_memory_limit_may_be_text():
    assert RunSpec.from_dict({"model": "bert", "memory_limit_bytes": "24GiB"}).memory_limit_bytes == 24 * 2**30


def test_the_input_size_is_the_workload_s_own_unless_given():
    assert RunSpec("resnet").input_size == 224
    assert RunSpec("resnet", image_size=64).input_size == 64
    assert RunSpec("gpt2").input_size == 128


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(list(RunSpec.__dataclass_fields__)) | st.text(max_size=10), json_values))
def test_any_json_object_is_a_spec_or_a_named_error(data):
    spec = None
    with contextlib.suppress(SpecError):
        spec = RunSpec.from_dict({"model": "bert", **data})
    assert spec is None or spec == RunSpec.from_dict(spec.to_dict())
