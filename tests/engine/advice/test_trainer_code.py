"""The code for transformers' Trainer sets what the Trainer would otherwise do differently from what was measured."""

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from engine.advice import snippets
from engine.measurement.torchvision_schemas import import_torchvision
from tests.engine.advice.libraries import run
from tests.engine.advice.recipes import MICRO, STEPS, recipe

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
