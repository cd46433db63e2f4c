"""The code to paste: for transformers' Trainer, for a model of one's own config, and what it leaves to the reader."""

from dataclasses import replace

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from engine.advice import snippets
from engine.advice.document import advise
from engine.advice.recipe import not_written
from engine.advice.stored import basis_of
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import build_model
from engine.settings.catalog import WORKLOADS
from engine.settings.catalog.from_config import MODEL_TYPES
from engine.settings.spec import RunSpec
from tests.engine.advice.libraries import run
from tests.engine.advice.recipes import MICRO, STEPS, recipe
from tests.engine.settings.catalog.hostile_configs import LLAMA
from tests.factories import make_result

EIGHT_BITS = {"adamw-8bit": "AdamW8bit", "paged-adamw-8bit": "PagedAdamW8bit", "lion-8bit": "Lion8bit"}


def code(model="bert", device_kind="cpu", **settings):
    return snippets.trainer(recipe(model, device_kind, **settings)).text


@pytest.mark.parametrize(("optimizer", "class_name"), EIGHT_BITS.items())
def test_an_optimizer_of_8_bits_is_given_by_its_class(optimizer, class_name):
    given = f'optimizer_cls_and_kwargs=(bitsandbytes.optim.{class_name}, {{"lr": learning_rate}})'
    text = code(optimizer=optimizer)
    assert given in text
    assert "import bitsandbytes" in text
    assert "optim=" not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries, about each other
def test_embeddings_have_state_of_8_bits_as_was_measured(tmp_path, monkeypatch):
    pytest.importorskip("bitsandbytes")
    import_torchvision()
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertForSequenceClassification(BertConfig(vocab_size=1024, **sizes))  # below 4,096 weights none has 8 bits
    table, states = model.bert.embeddings.word_embeddings.weight, []
    handle = register_optimizer_step_post_hook(lambda stepped, *_: states.append(stepped.state[table]))
    samples = [{"input_ids": torch.arange(4), "labels": torch.tensor(1)}] * MICRO * STEPS
    monkeypatch.chdir(tmp_path)
    try:
        run(code(optimizer="adamw-8bit"), model=model, dataset=samples, learning_rate=0.01)
    finally:
        handle.remove()
    assert {states[0][name].dtype for name in ("state1", "state2")} == {torch.uint8}


def test_fp32_convolutions_stay_in_fp32():
    line = "torch.backends.cudnn.allow_tf32 = False"
    assert line in code("resnet", "cuda")
    assert line not in code("bert", "cuda")
    assert "allow_tf32" not in code("resnet", "cuda", precision="tf32")  # an argument switches it on


def test_gradients_are_clipped_only_where_that_was_measured():
    assert "max_grad_norm=0," in code()
    assert "max_grad_norm" not in code(clip_grad_norm=True)


def test_several_devices_get_a_process_each():
    assert "# Start it with: torchrun --nproc-per-node 2 " in code(devices=2)
    assert "torchrun" not in code()


@pytest.mark.parametrize(
    ("model", "changes", "named"),
    [
        ("bert", {}, ()),
        ("bert", {"precision": "bf16", "optimizer": "sgd", "lora_rank": 4, "gradient_checkpointing": True}, ()),
        ("bert", {"accumulation_steps": 4, "ema": True}, ("EMA of the weights",)),
        ("bert", {"clip_grad_norm": True, "frozen_blocks": 2}, ("gradient clipping", "frozen blocks 2")),
        ("bert", {"gradients": "freed", "offload_activations": True, "optimizer": "paged-adamw-8bit"}, ()),
        ("bert", {"zero_grad": "before-backward"}, ("before-backward zero_grad",)),
        ("resnet", {"gradient_checkpointing": True}, ("gradient checkpointing",)),
        ("bert", {"ranks": 8, "strategy": "ddp"}, ()),
        ("bert", {"ranks": 8, "strategy": "fsdp"}, ("fsdp strategy",)),
        ("gpt2-lm", {"lora_rank": 4, "load_in_4bit": True, "sequences": "packed"}, ()),
        ("gpt2-lm", {"outputs": "released", "without_cache": True, "loss_chunk_tokens": 64}, ()),
    ],
)
def test_every_setting_that_no_snippet_writes_is_named(model, changes, named):
    assert set(not_written(RunSpec(model, **changes).to_dict())) == set(named)


def test_a_model_without_checkpointing_of_its_library_gets_no_call_of_it():
    assert not any("checkpointing" in line for line in recipe("resnet", gradient_checkpointing=True).model_lines())


@pytest.mark.slow  # imports every model of transformers that is offered
def test_a_model_gets_the_call_of_checkpointing_and_a_config_the_offer_of_it_where_its_class_has_it():
    import_torchvision()
    import transformers

    models = [model for model in WORKLOADS.values() if model.library == "transformers"]
    said = {model.model_class: model.library_has_checkpointing for model in models}
    said |= {f"{each.prefix}{each.model_suffix}": each.has_gradient_checkpointing for each in MODEL_TYPES.values()}
    has = {name: getattr(transformers, name).supports_gradient_checkpointing for name in said}
    assert said == has


OWN = {"model": "config", "config": LLAMA, "task": "text-generation"}


def basis(**settings):
    spec = RunSpec(**OWN, config_parameters=1_000_000, **settings)
    return basis_of(replace(make_result(), spec=spec).to_dict())


def test_code_is_written_for_every_library_or_its_absence_has_a_reason():
    advice = advise(basis(gradient_checkpointing=True))
    assert {each.id for each in advice.snippets} >= {"transformers", "accelerate", "lightning", "torch"}
    assert len(advice.snippets) + len(advice.left_out) == 4
    assert advice.not_in_code == ()


def test_gradients_are_those_of_its_counted_parameters():
    assert basis().gradients_bytes == 4_000_000
    assert basis(precision="bf16-pure").gradients_bytes == 2_000_000
    uncounted = replace(basis(), spec={**basis().spec, "config_parameters": None})
    assert uncounted.gradients_bytes is None


def test_a_config_that_is_no_longer_offered_has_no_code_and_no_gradients():
    stale = replace(basis(), spec={**basis().spec, "config": '{"model_type":"no-longer-offered"}'})
    assert (advise(stale).snippets, stale.gradients_bytes) == ((), None)
    assert not_written(stale.spec) == ()


@pytest.mark.filterwarnings("ignore")  # of libraries, about each other
def test_code_trains_the_model_of_the_config():
    spec = RunSpec(**OWN, device="cpu")
    tokens = torch.arange(4)
    samples = [{"input_ids": tokens, "labels": tokens}] * (MICRO * STEPS)
    model = build_model(spec)
    before = model.lm_head.weight.clone()
    code = snippets.plain_torch(recipe(**OWN)).text
    run(code, model=model, dataset=samples, learning_rate=0.01)
    assert not torch.equal(model.lm_head.weight, before)
