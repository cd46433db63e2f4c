"""Which layers of a model get an adapter of LoRA: by words that hold for every model, or by their names."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from engine.errors import SpecError
from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import build
from engine.settings.catalog import WORKLOADS
from engine.settings.catalog.from_config import MODEL_TYPES
from engine.settings.lora_options import lora_options
from engine.settings.lora_targets import check_targets, target_modules
from engine.settings.spec import RunSpec
from tests.engine.measurement.tensors import gradients

CPU = torch.device("cpu")
_SMALL = ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers")
_OF_PEFT_TOO = {"phi": ["fc1", "fc2"]}  # its mapping adds layers that are not of the attention
CLASSES = {
    f"{each.prefix}{each.model_suffix}": each.config_class or f"{each.prefix}Config" for each in MODEL_TYPES.values()
}
CLASSES |= {w.model_class: w.config_class for w in WORKLOADS.values() if w.library == "transformers"}
VIT = {"model_type": "vit", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "image_size": 32}
VIT |= {"num_attention_heads": 2, "patch_size": 8}


def adapters_of(spec, device="meta"):
    """Return the layers with adapters, and the other modules that are trained."""
    with torch.device(device):
        model = build(spec, torch.device(device)).model
    paths = {name.removeprefix("base_model.model.") for name, p in model.named_parameters() if p.requires_grad}
    adapted = {path.partition(".lora_")[0] for path in paths if ".lora_" in path}
    return adapted, {path for path in paths if ".lora_" not in path}


def ends(paths):
    return {path.rpartition(".")[2] for path in paths}


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("name", [name for name in CLASSES if not name.startswith(("ResNet", "ConvNext"))])
def test_of_every_model_the_words_mean_layers_that_it_has_and_query_and_value_are_those_of_peft(name):
    import_torchvision()
    import transformers
    from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as OF_PEFT
    from transformers.pytorch_utils import Conv1D

    config = getattr(transformers, CLASSES[name])()
    for key in _SMALL:
        if isinstance(getattr(config, key, None), int):
            setattr(config, key, 2)
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    workload = replace(WORKLOADS["bert"], model_class=name)
    paths = [path for path, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    check_targets(target_modules("attention", workload), paths, name)
    if config.model_type in OF_PEFT:
        of_peft = [each for each in OF_PEFT[config.model_type] if each not in _OF_PEFT_TOO.get(config.model_type, ())]
        assert target_modules("query-value", workload) == of_peft


@pytest.mark.parametrize(
    ("targets", "adapted"),
    [
        ("attention", {"query", "key", "value", "dense"}),
        ("query-value", {"query", "value"}),
        ("intermediate.dense", {"dense"}),
    ],
)
def test_only_the_layers_that_are_named_get_adapters_and_the_head_is_trained(targets, adapted):
    found, others = adapters_of(RunSpec("bert-tiny", lora_rank=4, lora_targets=targets))
    assert ends(found) == adapted
    assert not any("pooler" in path for path in found)
    assert all(("attention" in path) == (targets != "intermediate.dense") for path in found)
    assert others
    assert all("classifier" in path for path in others)


@pytest.mark.parametrize(("targets", "is_whole"), [("all-linear", False), ("query-value", True)])
def test_a_classifier_of_images_trains_its_head_whatever_gets_adapters(targets, is_whole):
    spec = RunSpec("config", config=json.dumps(VIT), task="image-classification", lora_rank=4, lora_targets=targets)
    found, others = adapters_of(spec)
    assert any("classifier" in path for path in found) is not is_whole
    assert any("classifier" in path for path in others) is is_whole


def test_a_name_that_no_layer_has_is_refused_with_those_that_are_there():
    spec = RunSpec("bert-tiny", lora_rank=4, lora_targets="query,q_proj")
    with pytest.raises(SpecError, match="lora_targets: .* no linear layer 'q_proj'; it has query, key, value, dense$"):
        adapters_of(spec)


def test_a_head_that_is_trained_as_a_whole_is_no_target():
    with pytest.raises(SpecError, match="no linear layer 'classifier'"):
        adapters_of(RunSpec("bert-tiny", lora_rank=4, lora_targets="classifier"))


def test_without_targets_and_dropout_adapters_are_made_as_they_always_were():
    spec = RunSpec("bert-tiny", lora_rank=4)
    options = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "task_type": "SEQ_CLS"}
    assert lora_options(spec, spec.workload) == options


def test_names_are_the_same_setting_in_any_order():
    specs = {RunSpec("bert", lora_rank=4, lora_targets=names) for names in ("value, query", "query,value,query")}
    assert {spec.lora_targets for spec in specs} == {"query,value"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"lora_targets": "attention"}, "lora_targets: needs a LoRA rank"),
        ({"lora_dropout": 0.1}, "lora_dropout: needs a LoRA rank"),
        ({"lora_rank": 4, "lora_dropout": 0.95}, "lora_dropout: 0.95 is out of range; from 0 to 0.9"),
        ({"lora_rank": 4, "lora_targets": "atention"}, "did you mean attention.* or names of layers joined by commas"),
        ({"lora_rank": 4, "lora_targets": "q_proj; v_proj"}, "is not offered; one of all-linear, attention"),
        ({"lora_rank": 4, "lora_targets": ",".join(f"layer_{n}" for n in range(40))}, "at most 160 characters"),
        ({"lora_variant": "dora"}, "lora_variant: needs a LoRA rank"),
        (
            {"lora_rank": 4, "lora_variant": "dora", "load_in_8bit": True},
            "dora is not offered on 8-bit base weights; take 4-bit ones",
        ),
        ({"load_in_8bit": True}, "load_in_8bit: needs a LoRA rank"),
        ({"lora_rank": 4, "load_in_8bit": True, "load_in_4bit": True}, "weights are stored once"),
        ({"lora_rank": 4, "lora_weights": "bf16"}, "bf16 needs precision bf16-pure; with fp32 the model's own"),
        ({"lora_rank": 4, "lora_targets": 7}, "lora_targets: must be text"),
        ({"lora_rank": 4, "lora_targets": "attention", "model": "resnet"}, "resnet has no attention"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name_before_anything_is_built(given, reason):
    with pytest.raises(SpecError, match=reason):
        RunSpec(**{"model": "bert", **given})


def test_dropout_of_adapters_is_that_of_the_training_and_off_in_eval_mode():
    def steps(**changes):
        spec = RunSpec("bert-tiny", device="cpu", sequence_length=8, optimizer="sgd", **changes)
        return TrainingStep(spec, build(spec, CPU), CPU)

    step = steps(lora_rank=2, lora_dropout=0.25)
    dropouts = [module for path, module in step.built.model.named_modules() if "lora_dropout.default" in path]
    assert {module.p for module in dropouts} == {0.25}
    step(2)
    assert torch.isfinite(step.loss)
    assert all(gradient.any() for gradient in gradients(step)[-2:])
    assert not any(
        module.training for module in steps(lora_rank=2, lora_dropout=0.25, mode="eval").built.model.modules()
    )


def weights_of(**changes):
    spec = RunSpec("bert-tiny", device="cpu", sequence_length=8, optimizer="sgd", lora_rank=2, **changes)
    step = TrainingStep(spec, build(spec, CPU), CPU)
    step(2)
    assert torch.isfinite(step.loss)
    learned = {name: weight for name, weight in step.built.model.named_parameters() if weight.requires_grad}
    assert all(weight.grad is not None for weight in learned.values())
    return learned


def test_rslora_has_the_weights_of_plain_lora_and_dora_a_magnitude_for_each_output_more():
    plain, rslora, dora = (weights_of(lora_variant=variant) for variant in ("plain", "rslora", "dora"))
    assert {name: weight.shape for name, weight in rslora.items()} == {n: w.shape for n, w in plain.items()}
    more = {name: weight for name, weight in dora.items() if name not in plain}
    assert more
    assert all("lora_magnitude_vector" in name and weight.dim() == 1 for name, weight in more.items())


@pytest.mark.parametrize("in_4_bits", [False, True])
def test_adapters_are_fp32_or_of_the_model_s_own_type(in_4_bits):
    if in_4_bits:
        pytest.importorskip("bitsandbytes")
    as_peft, own = (
        {weight.dtype for name, weight in weights_of(**changes).items() if "lora_" in name}
        for changes in (
            {"precision": "bf16-pure", "load_in_4bit": in_4_bits},
            {"precision": "bf16-pure", "load_in_4bit": in_4_bits, "lora_weights": "bf16"},
        )
    )
    assert (as_peft, own) == ({torch.float32}, {torch.bfloat16})
