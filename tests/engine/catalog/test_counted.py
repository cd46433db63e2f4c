"""The parameters of a config are counted in a child, which is given neither time, memory nor network without end."""

import json

import pytest

from engine.errors import SpecError
from engine.spec import RunSpec
from engine.worker import counted as module
from engine.worker.counted import counted
from tests.engine.catalog.hostile_configs import LLAMA, ODD

LLAMA_1B = {
    **{"model_type": "llama", "vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64},
    **{"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True},
    **{"max_position_embeddings": 131_072, "rms_norm_eps": 1e-05, "architectures": ["LlamaForCausalLM"]},
}


def spec(config: object = LLAMA) -> RunSpec:
    return RunSpec.from_dict({"config": config, "task": "text-generation"})


def test_a_model_of_the_catalogue_is_not_counted_again(monkeypatch):
    monkeypatch.setattr(module.subprocess, "run", None)
    assert counted(RunSpec("bert")) == RunSpec("bert")


def test_a_child_that_does_not_end_in_time_is_a_refusal(monkeypatch):
    monkeypatch.setattr(module, "COMMAND", ("sleep", "60"))
    with pytest.raises(SpecError, match="config: its model was not built within 0 s"):
        counted(spec(), seconds_max=0.2)


@pytest.mark.slow
def test_the_count_of_a_published_config_is_the_published_one():
    said: list[str] = []
    known = counted(spec(LLAMA_1B), said.append)
    assert known.config_parameters == 1_235_814_400
    assert known.workload.name.startswith("llama-like 1.24 B, config ")
    assert known.model == spec(LLAMA_1B).model
    assert "1,235,814,400 parameters" in said[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_an_odd_config_is_counted_or_refused_by_its_field(name):
    given = spec(json.loads(ODD[name]))
    try:
        number = counted(given, seconds_max=60).config_parameters
    except SpecError as error:
        number, refusal = None, error
    assert number or (refusal.field == "config" and len(str(refusal)) < 1_000)
