"""A deep model's memory from traces of a few of its layers: the same to the byte as from traces of all."""

import json
from dataclasses import replace

import pytest

from engine.estimate.tracing import layers, trace
from engine.measurement.workloads import equal_layers
from engine.settings.spec import RunSpec
from tests.engine.estimate.small_trainings import ON_A_CARD, ON_CPU, needs_fake_cuda, tiny

pytestmark = pytest.mark.usefixtures("one_thread")
COUNT = 6


def deep(model_type="llama", task="text-generation", **settings):
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": COUNT, "num_attention_heads": 2}
    config = {"model_type": model_type, **sizes, "num_key_value_heads": 2, "vocab_size": 100, "pad_token_id": 0}
    config["max_position_embeddings"] = 64
    return RunSpec("config", config=json.dumps(config), task=task, **{"sequence_length": 32, **settings})


def few_and_all(spec, conditions):
    return trace._model_of_layers(spec, COUNT, conditions, None), trace.model_of_steps(
        trace.step_maker(spec), conditions
    )


@needs_fake_cuda
@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        {"clip_grad_norm": True, "accumulation_steps": 2},
        {"precision": "bf16-pure", "lora_rank": 4, "lora_dropout": 0.1, "gradient_checkpointing": True},
    ],
    ids=["all weights", "adapters"],
)
def test_a_few_layers_tell_what_all_allocate_on_a_card(chosen):
    few, whole = few_and_all(deep(**chosen), ON_A_CARD)
    assert few == whole


@pytest.mark.slow
def test_they_tell_the_cpu_s_memory_as_well_and_that_of_one_size(monkeypatch):
    spec = deep(optimizer="sgd")
    few, whole = few_and_all(spec, ON_CPU)
    assert few == whole
    monkeypatch.setattr(trace, "MANY_LAYERS", COUNT)
    of_one_size, of_all = trace.model_of_one_size(spec, None).at(4), whole.at(4)
    assert (of_one_size.skeleton, of_one_size.counts) == (of_all.skeleton, of_all.counts)
    assert list(of_one_size.sizes_bytes) == list(of_all.sizes_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["gemma", "opt", "falcon", "bert"])
def test_they_tell_it_for_other_stacks_of_layers_too(model_type):
    task = "text-classification" if model_type == "bert" else "text-generation"
    few, whole = few_and_all(deep(model_type, task), ON_CPU)
    assert few == whole


def test_layers_that_differ_are_traced_one_and_all():
    assert equal_layers(RunSpec("gemma-2-2b")) is None  # every other layer attends to a window
    assert equal_layers(RunSpec("t5-small")) is None  # two stacks
    assert equal_layers(RunSpec("resnet18")) is None
    assert equal_layers(RunSpec("gpt2-medium")) == 24
    assert trace._equal_layers(RunSpec("gpt2-medium")) == 24
    assert trace._equal_layers(RunSpec("gpt2-medium", frozen_blocks=3)) is None
    assert trace._equal_layers(tiny()) is None  # two layers are less work than two, three and four


def test_traces_that_do_not_grow_by_equal_layers_tell_nothing():
    spec = deep(optimizer="sgd")
    few = [trace.record(trace.step_maker(spec, count), 3, ON_CPU) for count in layers.FEW]
    assert layers.repeated(few, COUNT).recording(few[1]) == trace.record(trace.step_maker(spec), 3, ON_CPU)
    assert layers.repeated([few[0], few[1], few[1]], COUNT) is None
    larger = replace(few[2], sizes_bytes=(few[2].sizes_bytes[0] + 512, *few[2].sizes_bytes[1:]))
    assert layers.repeated([few[0], few[1], larger], COUNT) is None
