"""The catalogue tells the truth about the models, and every one of them trains."""

import importlib
import sys

import pytest
import torch

from engine.errors import SpecError, WeightsUnavailable
from engine.measurement.optimizers import make_optimizer
from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import blocks_of, build
from engine.questions.size import measure
from engine.settings.catalog import TASK_LABELS, WORKLOADS
from engine.settings.catalog.from_config import MODEL_TYPES
from engine.settings.spec import RunSpec
from tests.engine.measurement.tensors import gradients, state_tensors


@pytest.mark.parametrize("model", WORKLOADS)
def test_the_catalogue_s_parameter_count_is_the_model_s(model):
    with torch.device("meta"):
        built = build(RunSpec(model), torch.device("meta"))
    assert sum(p.numel() for p in built.model.parameters()) == WORKLOADS[model].parameter_count


@pytest.mark.parametrize("model", [w.id for w in WORKLOADS.values() if w.block_count])
def test_a_model_has_as_many_blocks_as_the_catalogue_says_and_a_head_after_them(model):
    count = WORKLOADS[model].block_count
    with torch.device("meta"):
        built = build(RunSpec(model, frozen_blocks=count), torch.device("meta"))
    assert len(blocks_of(built.model)) == count
    frozen = [parameter.requires_grad is False for parameter in built.model.parameters()]
    head = frozen.index(False)
    assert all(frozen[:head])
    assert not any(frozen[head:])
    of_blocks = {id(parameter) for block in blocks_of(built.model) for parameter in block.parameters()}
    assert not any(id(p) in of_blocks for p in built.model.parameters() if p.requires_grad)


def attentions_of(class_name: str) -> tuple[str, ...]:
    import_torchvision()
    model_class = getattr(importlib.import_module("transformers"), class_name)
    has = {"eager": True, "sdpa": model_class._supports_sdpa, "flash_attention_2": model_class._supports_flash_attn}
    return tuple(name for name, is_there in has.items() if is_there)


@pytest.mark.parametrize("model", [w.id for w in WORKLOADS.values() if w.library == "transformers"])
def test_the_attentions_of_the_catalogue_are_those_that_the_library_has_for_the_model(model):
    workload = WORKLOADS[model]
    assert workload.attentions == (attentions_of(workload.model_class) if workload.architecture != "cnn" else ())


def test_the_attentions_of_a_config_are_those_that_the_library_has_for_its_type():
    has = {
        name: attentions_of(f"{known.prefix}{known.model_suffix}") if known.architecture != "cnn" else ()
        for name, known in MODEL_TYPES.items()
    }
    assert {name: known.attentions for name, known in MODEL_TYPES.items()} == has


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("model", ["bert-tiny", "t5-small", "clip-vit-b-32"])
def test_the_requested_attention_is_in_every_part_of_the_model(model, attention):
    with torch.device("meta"):
        built = build(RunSpec(model, attention=attention), torch.device("meta"))
    configs = [module.config for module in built.model.modules() if hasattr(module, "config")]
    assert {config._attn_implementation for config in configs} == {attention}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"model": "deberta-v3", "attention": "sdpa"}, "deberta-v3 has no sdpa; it takes auto, eager"),
        ({"model": "vit_b_16", "attention": "eager"}, "vit_b_16 has no eager"),
        (
            {"model": "bert", "attention": "flash_attention_2", "device": "cpu", "precision": "bf16"},
            "needs a CUDA device",
        ),
        ({"model": "bert", "attention": "flash_attention_2"}, "needs half precision"),
    ],
)
def test_an_attention_that_cannot_run_is_refused_with_what_it_needs(given, reason):
    with pytest.raises(SpecError, match=reason):
        RunSpec(**given)


def test_flash_attention_is_refused_where_its_package_or_a_card_is_missing():
    spec = RunSpec("bert-tiny", attention="flash_attention_2", precision="bf16")
    with pytest.raises(SpecError, match="not cpu"):
        build(spec, torch.device("cpu"))
    with pytest.raises(SpecError, match="package flash-attn"):
        build(spec, torch.device("cuda"))


CHECKPOINTED = [w.id for w in WORKLOADS.values() if w.has_gradient_checkpointing]
OF_IMAGES = [name for name in CHECKPOINTED if WORKLOADS[name].task in ("image-classification", "image-segmentation")]


@pytest.mark.parametrize("model", [name for name in CHECKPOINTED if name not in OF_IMAGES])
def test_a_model_said_to_have_checkpointing_has_it(model):
    with torch.device("meta"):
        built = build(RunSpec(model, gradient_checkpointing=True), torch.device("meta"))
    assert any(getattr(module, "gradient_checkpointing", False) for module in built.model.modules())


@pytest.mark.slow
@pytest.mark.parametrize("model", OF_IMAGES)
def test_a_checkpointed_model_of_images_keeps_much_less_for_the_backward_pass(model):
    assert bytes_retained(model, gradient_checkpointing=True) < 0.7 * bytes_retained(
        model
    )  # of ResNet-18 the stem is a third


def bytes_retained(model, **settings):
    """What autograd saves in one forward pass, without the weights; no data is needed to count it."""
    spec, found = RunSpec(model, image_size=96, **settings), {}
    with torch.device("meta"):
        built = build(spec, torch.device("meta"))
        batch = built.make_batch(2)

        def keep(tensor):
            if not isinstance(tensor, torch.nn.Parameter):
                found[tensor.untyped_storage()._cdata] = tensor
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            built.forward(batch)
    return sum(tensor.untyped_storage().nbytes() for tensor in found.values())


def test_checkpointed_blocks_learn_from_the_same_gradients():
    torch.manual_seed(0)
    plain = build(RunSpec("resnet18", image_size=48), torch.device("cpu"))
    checkpointed = build(RunSpec("resnet18", image_size=48, gradient_checkpointing=True), torch.device("cpu"))
    checkpointed.model.load_state_dict(plain.model.state_dict())
    batch = plain.make_batch(2)
    for built in (plain, checkpointed):
        built.loss(built.forward(batch), batch).backward()
    for one, other in zip(plain.model.parameters(), checkpointed.model.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize("model", ["bert-tiny", "resnet18"])
def test_batches_differ_from_step_to_step_and_have_the_size_asked_for(model):
    size = {"sequence_length": 16} if model == "bert-tiny" else {"image_size": 48}
    built = build(RunSpec(model, **size), torch.device("cpu"))
    first, second = built.make_batch(3), built.make_batch(3)
    assert {len(tensor) for tensor in first.values()} == {3}
    name = "input_ids" if model == "bert-tiny" else "pixel_values"
    assert first[name].shape[-1] == next(iter(size.values()))
    assert not torch.equal(first[name], second[name])


SMALLEST_OF_EACH_TASK = {
    "text-classification": RunSpec("bert-tiny"),
    "text-generation": RunSpec("gpt2-lm", sequence_length=8),
    "text2text-generation": RunSpec("t5-small", sequence_length=8),
    "image-classification": RunSpec("resnet18", image_size=48),
    "image-segmentation": RunSpec("deeplabv3-resnet50", image_size=64),
    "object-detection": RunSpec("retinanet-resnet50", image_size=64),
    "automatic-speech-recognition": RunSpec("whisper-tiny", sequence_length=8),
    "image-text-matching": RunSpec("clip-vit-b-32", image_size=32),
    "text-to-image": RunSpec("sd-unet", image_size=64),
}


def test_every_task_is_tried_here():
    assert SMALLEST_OF_EACH_TASK.keys() == TASK_LABELS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("spec", SMALLEST_OF_EACH_TASK.values())
def test_the_loss_of_each_task_is_finite_and_reaches_the_parameters(spec):
    built = build(spec, torch.device("cpu"))
    batch = built.make_batch(2)
    loss = built.loss(built.forward(batch), batch)
    loss.backward()
    assert {len(tensor) for tensor in batch.values()} == {2}
    assert loss.isfinite()
    without = [name for name, p in built.model.named_parameters() if p.requires_grad and p.grad is None]
    assert without == []


@pytest.mark.slow
def test_a_model_whose_weights_alone_exceed_the_limit_is_not_built():
    result = measure(RunSpec("llama-3.1-8b", device="cpu"), estimates=False)
    assert result.boundary.largest_batch_size == 0
    assert "the weights alone take" in result.probes[-1].error_message


@pytest.mark.parametrize("model", ["bert-tiny", "distilbert"])
def test_with_a_lora_rank_only_the_adapters_and_the_head_are_learned(model):
    with torch.device("meta"):
        model = build(RunSpec(model, lora_rank=4), torch.device("meta")).model
    learned = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learned
    assert all("lora_" in name or "classifier" in name for name in learned)


def test_in_pure_bf16_weights_gradients_and_state_are_halves():
    step = TrainingStep(
        RunSpec("bert-tiny", sequence_length=8, precision="bf16-pure"),
        build(RunSpec("bert-tiny", sequence_length=8, precision="bf16-pure"), torch.device("cpu")),
        torch.device("cpu"),
    )
    step(2)
    moments = [tensor for tensor in state_tensors(step) if tensor.dim()]
    assert {t.dtype for t in (*step.built.model.parameters(), *gradients(step), *moments)} == {torch.bfloat16}


def test_an_optimizer_whose_library_is_missing_is_refused_by_its_field(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(SpecError, match=r"optimizer: adamw-8bit needs bitsandbytes.*pip install bitsandbytes"):
        make_optimizer("adamw-8bit", torch.nn.Linear(2, 2).parameters())


def test_a_model_that_has_no_loss_in_eval_mode_refuses_it():
    with pytest.raises(SpecError, match="mode"):
        RunSpec("retinanet-resnet50", mode="eval")


@pytest.mark.slow
def test_gpt2_takes_batches_with_padding():
    built = build(RunSpec("gpt2", sequence_length=8), torch.device("cpu"))
    assert built.model.config.pad_token_id is not None
    batch = built.make_batch(2)
    assert built.loss(built.forward(batch), batch).isfinite()


def test_pretrained_weights_that_cannot_be_had_are_a_clear_error(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")

    def refuse(*_, **__):
        raise OSError("We couldn't connect to the hub")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(WeightsUnavailable, match="run without --pretrained"):
        build(RunSpec("bert-tiny", pretrained=True), torch.device("cpu"))
