"""The code to paste of a loss in chunks trains the same weights as the code of the model's own loss."""

import copy
import json

import pytest
import torch

from engine.advice import configurations, snippets
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import build_model
from engine.spec import RunSpec
from tests.engine.advice.libraries import of_each_library, run
from tests.engine.advice.recipes import MICRO, STEPS, recipe

TOKENS = 8
SIZES = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16},
    **{"num_key_value_heads": 1, "vocab_size": 60, "attention_dropout": 0.0},
}
CAPPED = {"model_type": "gemma2", **SIZES, "final_logit_softcapping": 0.5}
SCALED = {"model_type": "granite", **SIZES, "logits_scaling": 4.0}


def language_model(config):
    return {"model": "config", "config": json.dumps(config), "task": "text-generation"}


LANGUAGE_MODEL = language_model(CAPPED)
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, about each other


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return MICRO * STEPS * 2

    def __getitem__(self, index):
        tokens = torch.randint(0, 60, (TOKENS,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens.masked_fill(torch.arange(TOKENS) < 2, -100)}


def weights_after(code, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)  # of the order of the samples
    return run(code, model=copy.deepcopy(model), dataset=Texts(), learning_rate=0.5)["model"].state_dict()


@of_each_library
@pytest.mark.parametrize(("config", "logits"), [(CAPPED, "kept"), (CAPPED, "recomputed"), (SCALED, "kept")])
def test_code_of_a_loss_in_chunks_trains_the_weights_of_the_model_s_own_loss(
    write, config, logits, tmp_path, monkeypatch
):
    settings = {**language_model(config), "optimizer": "sgd"}
    model = build_model(RunSpec(**settings))
    own = weights_after(write(recipe(**settings)).text, model, tmp_path, monkeypatch)
    chunked = write(recipe(**settings, loss_chunk_tokens=3, loss_chunk_logits=logits)).text
    ours = weights_after(chunked, model, tmp_path, monkeypatch)
    assert any(not torch.equal(own[name], weight) for name, weight in model.state_dict().items())
    torch.testing.assert_close(ours, own, rtol=1e-4, atol=1e-5)


@of_each_library
def test_code_without_a_cache_switches_it_off_and_bf16_logits_are_not_converted(write):
    code = write(recipe(**LANGUAGE_MODEL, precision="bf16-pure", half_precision_loss=True, without_cache=True)).text
    assert "model.config.use_cache = False" in code
    assert ".float()" not in code


def test_code_without_a_cache_switches_off_that_of_a_decoder_with_a_config_of_its_own():
    import_torchvision()
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 8, "d_ff": 8, "d_kv": 4, "num_layers": 1, "num_heads": 2, "vocab_size": 16}
    model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0, pad_token_id=0))
    text = torch.ones(1, 4, dtype=torch.int64)
    assert model(input_ids=text, labels=text).past_key_values is not None
    run("\n".join(recipe("t5-small", without_cache=True).model_lines()), model=model)
    assert model(input_ids=text, labels=text).past_key_values is None


def test_libraries_that_cannot_compute_the_loss_in_chunks_say_why():
    several = recipe(**LANGUAGE_MODEL, loss_chunk_tokens=3, devices=2)
    for write in (snippets.trainer, snippets.accelerate, configurations.deepspeed, configurations.torchtitan):
        refused = write(several)
        assert isinstance(refused, snippets.NoSnippet)
        assert "loss" in refused.reason
