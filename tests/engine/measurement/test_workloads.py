"""The catalogue tells the truth about the models, and every one of them trains."""

import pytest
import torch

from engine.catalog import WORKLOADS
from engine.errors import WeightsUnavailable
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


@pytest.mark.parametrize("model", ["bert-tiny", "resnet18"])
def test_the_loss_reaches_every_parameter(model):
    built = build(RunSpec(model), torch.device("cpu"))
    batch = built.make_batch(2)
    built.loss(built.forward(batch), batch).backward()
    assert all(p.grad is not None for p in built.model.parameters())


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
