"""Weights of 4 bits: which layers have them, what they take, and which weights are trained. Real bitsandbytes."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from engine.errors import SpecError
from engine.facts.result import Outcome
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, run_probe
from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import build
from engine.settings.lora_options import FourBits
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from tests.engine.measurement.tensors import gradients

pytest.importorskip("bitsandbytes")

CPU = torch.device("cpu")
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 200, "n_positions": 32}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 200,
    "tie_word_embeddings": False,
}


def spec_of(config=None, **changes) -> RunSpec:
    changes = {"device": "cpu", "lora_rank": 4, "load_in_4bit": True, "sequence_length": 16, **changes}
    if config is None:
        return RunSpec("bert-tiny", **changes)
    return RunSpec("config", config=json.dumps(config), task="text-generation", **changes)


def layers_in_4_bits(model: nn.Module) -> dict[str, nn.Module]:
    return {
        path.removeprefix("base_model.model.").removesuffix(".base_layer"): module
        for path, module in model.named_modules()
        if getattr(getattr(module, "weight", None), "quant_state", None) is not None and hasattr(module, "in_features")
    }


def test_every_linear_layer_but_the_trained_head_is_stored_in_4_bits():
    model = build(spec_of(), CPU).model
    in_4_bits = layers_in_4_bits(model)
    assert len(in_4_bits) == 2 * 6 + 1  # of each block six, and the pooler
    assert not any("classifier" in path for path in in_4_bits)
    learned = {name: weight.dtype for name, weight in model.named_parameters() if weight.requires_grad}
    assert all("lora_" in name or "classifier" in name for name in learned)
    assert set(learned.values()) == {torch.float32}
    assert model.get_submodule("base_model.model.bert.embeddings.word_embeddings").weight.dtype == torch.float32


@pytest.mark.parametrize(("config", "of_a_block"), [(GPT2, 4), (LLAMA, 7)], ids=["gpt2", "llama"])
def test_of_a_language_model_the_blocks_are_in_4_bits_and_the_output_layer_is_not(config, of_a_block):
    model = build(spec_of(config), CPU).model
    in_4_bits = layers_in_4_bits(model)
    assert len(in_4_bits) == 2 * of_a_block
    assert "lm_head" not in in_4_bits
    assert model.get_submodule("base_model.model.lm_head").weight.dtype == torch.float32
    # gpt2 has its weights transposed: what a layer takes and gives is as before
    wide = next(module for path, module in in_4_bits.items() if path.endswith(("mlp.c_fc", "mlp.gate_proj")))
    assert wide.out_features > wide.in_features == 64


@pytest.mark.parametrize("config", [None, GPT2, LLAMA], ids=["bert", "gpt2", "llama"])
def test_a_quantised_layer_takes_half_a_byte_a_weight_and_its_scales_a_byte_for_each_64(config):
    for layer in layers_in_4_bits(build(spec_of(config), CPU).model).values():
        count = layer.in_features * layer.out_features
        scales = count // 64
        own = [layer.weight, *layer.buffers(recurse=False)]
        assert sum(tensor.nbytes for tensor in own) == count // 2 + scales + -(-scales // 256) * 4 + 4 * (16 + 256 + 1)


@pytest.mark.parametrize("stored_as", ["nf4-dq", "nf4", "fp4-dq", "fp4"])
def test_a_layer_computes_what_the_library_s_own_layer_computes_from_the_same_weights_with_dora_too(stored_as):
    import_torchvision()
    import peft
    from bitsandbytes.nn import Linear4bit

    from engine.measurement.quantization import FourBitLinear

    how = FourBits.of(spec_of(four_bit_format=stored_as), "bf16")
    plain = nn.Linear(64, 96, dtype=torch.bfloat16)
    theirs = Linear4bit(
        64, 96, compute_dtype=torch.bfloat16, quant_type=how.quant_type, compress_statistics=how.is_double
    )
    theirs.load_state_dict(plain.state_dict())
    theirs.weight.data = plain.weight.detach().clone()  # quantised as it was loaded: DoRA gets it back in that type
    theirs = theirs.to("cpu")
    theirs.bias.data = theirs.bias.data.bfloat16()
    ours = FourBitLinear(plain.weight.detach(), plain.bias.detach(), how)
    inputs = [torch.randn(8, 64, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2)]
    outputs = [layer(each) for layer, each in zip((ours, theirs), inputs, strict=True)]
    for output in outputs:
        output.sum().backward()
    assert torch.equal(*outputs)
    assert torch.equal(*(each.grad for each in inputs))
    assert outputs[0].dtype == torch.float32  # it gives what it took
    dora = peft.LoraConfig(r=2, target_modules=["0"], use_dora=True)
    adapted = [peft.get_peft_model(nn.Sequential(layer), dora) for layer in (ours, theirs)]
    magnitudes = [model.base_model.model[0].lora_magnitude_vector.default.weight for model in adapted]
    assert torch.equal(*magnitudes)
    for model in adapted:
        model.base_model.model[0].lora_A.default.weight.data.fill_(0.1)
        model.base_model.model[0].lora_B.default.weight.data.fill_(0.1)
    assert torch.equal(*(model(inputs[0]) for model in adapted))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "bf16-pure"])
def test_adapters_of_4_bit_layers_are_learned_in_every_precision_and_the_weights_stay(precision):
    spec = spec_of(LLAMA, precision=precision, optimizer="sgd", gradient_checkpointing=True)
    step = TrainingStep(spec, build(spec, CPU), CPU)
    layers = layers_in_4_bits(step.built.model)
    assert {layer.compute_dtype for layer in layers.values()} == {
        torch.float16 if precision == "fp16" else torch.bfloat16
    }
    before = {path: layer.weight.clone() for path, layer in layers.items()}
    step(2)
    assert torch.isfinite(step.loss)
    learned = [parameter for parameter in step.built.model.parameters() if parameter.requires_grad]
    assert learned
    assert all(parameter.grad is not None for parameter in learned)
    assert all(torch.equal(before[path], layer.weight) for path, layer in layers.items())


def test_a_probe_counts_the_weights_of_4_bits_with_all_that_they_are_read_back_with():
    device = Cpu(CPU)
    device.limit_bytes = GIB
    spec = spec_of()
    built = build(spec, CPU)
    probe = run_probe(Bench(spec, device, built), 2)
    assert probe.outcome is Outcome.FITS
    quantised = sum(
        sum(tensor.nbytes for tensor in (layer.weight, layer.bias, *layer.buffers(recurse=False)))
        for layer in layers_in_4_bits(built.model).values()
    )
    others = [p for p in built.model.parameters() if p.dtype == torch.float32]
    positions = sum(b.nbytes for b in built.model.buffers() if b.dtype == torch.int64)
    assert probe.memory_by_kind.parameters_bytes == quantised + sum(p.nbytes for p in others) + positions


def test_the_weights_of_a_large_model_count_in_4_bits_before_it_is_built():
    assert RunSpec("llama-3.1-8b", lora_rank=16).weights_bytes > 24 * GIB
    assert RunSpec("llama-3.1-8b", lora_rank=16, load_in_4bit=True).weights_bytes < 4 * GIB


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"model": "bert"}, "load_in_4bit: needs a LoRA rank"),
        ({"model": "bert", "lora_rank": 4, "four_bit_output_layer": True}, "bert is no language model"),
        ({"model": "resnet", "lora_rank": 4}, "load_in_4bit: resnet has no linear layers but its head"),
        ({"model": "vit_b_16", "lora_rank": 4}, "lora_rank: vit_b_16 is no model of transformers"),
    ],
)
def test_4_bits_are_refused_by_name_where_they_cannot_be(given, reason):
    with pytest.raises(SpecError, match=reason):
        RunSpec(**given, load_in_4bit=True)


@pytest.mark.parametrize("given", [{"four_bit_format": "fp4"}, {"four_bit_compute": "fp32"}], ids=str)
def test_settings_of_4_bits_are_refused_without_them(given):
    with pytest.raises(SpecError, match=f"{next(iter(given))}: needs 4-bit base weights"):
        RunSpec("bert", lora_rank=4, **given)


@pytest.mark.parametrize("stored_as", ["nf4-dq", "nf4", "fp4-dq", "fp4"])
def test_without_double_quantisation_the_scales_of_64_weights_take_4_bytes_and_not_1(stored_as):
    layers = layers_in_4_bits(build(spec_of(four_bit_format=stored_as), CPU).model)
    for layer in layers.values():
        scales = layer.in_features * layer.out_features // 64
        assert (layer.absmax.nbytes == scales) is stored_as.endswith("dq")
        assert (layer.absmax.nbytes == 4 * scales) is not stored_as.endswith("dq")
        assert layer.weight.quant_state.quant_type == stored_as.partition("-")[0]


def test_the_output_layer_is_in_4_bits_where_that_is_requested_and_trains_the_adapters():
    spec = spec_of(LLAMA, four_bit_output_layer=True, four_bit_compute="fp32", optimizer="sgd")
    step = TrainingStep(spec, build(spec, CPU), CPU)
    in_4_bits = layers_in_4_bits(step.built.model)
    assert "lm_head" in in_4_bits
    assert {layer.compute_dtype for layer in in_4_bits.values()} == {torch.float32}
    step(2)
    assert torch.isfinite(step.loss)
    assert all(gradient.isfinite().all() for gradient in gradients(step))


def test_an_output_layer_that_shares_its_weights_is_not_put_into_4_bits():
    with pytest.raises(SpecError, match="four_bit_output_layer: .* shares its weights with the embeddings"):
        build(spec_of(GPT2, four_bit_output_layer=True), CPU)


def test_a_device_without_bitsandbytes_is_refused_with_those_that_it_takes():
    with pytest.raises(SpecError, match="load_in_4bit: bitsandbytes does not run on meta; it takes cpu, cuda"):
        build(spec_of(), torch.device("meta"))


def test_without_the_library_4_bits_are_refused_by_their_field(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    monkeypatch.delitem(sys.modules, "engine.measurement.quantization", raising=False)
    with pytest.raises(SpecError, match="load_in_4bit: needs bitsandbytes: pip install bitsandbytes"):
        build(spec_of(), CPU)


@pytest.mark.slow
def test_the_library_is_not_imported_before_a_process_forks():
    code = "; ".join(
        (
            "import sys",
            "from engine.measurement import workloads",
            "workloads.preload('config')",
            "assert 'transformers.modeling_utils' in sys.modules",
            "assert 'bitsandbytes' not in sys.modules",
        )
    )
    subprocess.run([sys.executable, "-c", code], check=True)
