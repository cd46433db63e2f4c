"""The catalogue tells the truth about the models, and every one of them trains."""

import pytest
import torch

from engine import measure
from engine.catalog import TASK_LABELS, WORKLOADS
from engine.errors import SpecError, WeightsUnavailable
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import build
from engine.spec import RunSpec


@pytest.mark.parametrize("model", WORKLOADS)
def test_the_catalogue_s_parameter_count_is_the_model_s(model):
    with torch.device("meta"):
        built = build(RunSpec(model), torch.device("meta"))
    assert sum(p.numel() for p in built.model.parameters()) == WORKLOADS[model].parameter_count


@pytest.mark.parametrize("model", [w.id for w in WORKLOADS.values() if w.has_gradient_checkpointing])
def test_a_model_said_to_have_checkpointing_has_it(model):
    with torch.device("meta"):
        built = build(RunSpec(model, gradient_checkpointing=True), torch.device("meta"))
    assert any(getattr(module, "gradient_checkpointing", False) for module in built.model.modules())


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


@pytest.mark.parametrize(
    "spec", [pytest.param(s, marks=[pytest.mark.slow] * (s.model == "sd-unet")) for s in SMALLEST_OF_EACH_TASK.values()]
)
def test_the_loss_of_each_task_is_finite_and_reaches_the_parameters(spec):
    built = build(spec, torch.device("cpu"))
    batch = built.make_batch(2)
    loss = built.loss(built.forward(batch), batch)
    loss.backward()
    assert {len(tensor) for tensor in batch.values()} == {2}
    assert loss.isfinite()
    without = [name for name, p in built.model.named_parameters() if p.requires_grad and p.grad is None]
    assert without == []


def test_a_model_whose_weights_alone_exceed_the_limit_is_not_built():
    result = measure(RunSpec("llama-3.1-8b", device="cpu"), estimates=False)
    assert result.boundary.largest_batch_size == 0
    assert "the weights alone take" in result.probes[-1].error_message


def test_with_a_lora_rank_only_the_adapters_and_the_head_are_learned():
    model = build(RunSpec("bert-tiny", lora_rank=4), torch.device("cpu")).model
    learned = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learned
    assert all("lora_" in name or "classifier" in name for name in learned)


def test_a_model_outside_transformers_has_no_adapters():
    with pytest.raises(SpecError, match="lora_rank"):
        RunSpec("resnet18", lora_rank=4)


def test_in_pure_bf16_weights_gradients_and_state_are_halves():
    step = TrainingStep(
        RunSpec("bert-tiny", sequence_length=8, precision="bf16-pure"),
        build(RunSpec("bert-tiny", sequence_length=8, precision="bf16-pure"), torch.device("cpu")),
        torch.device("cpu"),
    )
    step(2)
    moments = [tensor for tensor in step.state_tensors() if tensor.dim()]
    assert {t.dtype for t in (*step.built.model.parameters(), *step.gradients(), *moments)} == {torch.bfloat16}


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
