"""What of a training the code to paste leaves to the reader is named."""

import pytest

from engine.advice.recipe import not_written
from engine.catalog import WORKLOADS
from engine.catalog.from_config import MODEL_TYPES
from engine.measurement.torchvision_schemas import import_torchvision
from engine.spec import RunSpec
from tests.engine.advice.recipes import recipe


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
