"""The settings of a training in its trace: the same bytes as real steps on the CPU, and as a card would run them."""

from dataclasses import replace

import pytest
import torch

from engine.errors import EstimateImpossible, SpecError
from engine.estimate.batch_model import ACTIVATIONS, BUFFERS, PARAMETERS, STATE
from engine.estimate.gpus import find
from engine.estimate.predict import check
from engine.estimate.tracing import fake_cuda, trace
from engine.facts.progress import BACKWARD, FORWARD
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import build
from engine.settings.optimizers import OPTIMIZERS
from tests.engine.estimate.small_trainings import CPU, ON_A_CARD, ON_CPU, decoder, needs_fake_cuda, real_peak, tiny
from tests.engine.measurement.tensors import state_tensors

EIGHT_BIT = ("adamw-8bit", "lion-8bit")
PAGED = tuple(name for name, each in OPTIMIZERS.items() if each.unpaged)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"precision": "bf16"},
        {"precision": "fp16", "mode": "eval"},
        {"lora_rank": 8},
        {"lora_rank": 8, "precision": "bf16"},
        {"lora_rank": 8, "load_in_4bit": True},
        {"lora_rank": 8, "load_in_4bit": True, "lora_variant": "dora"},
        {"lora_rank": 8, "load_in_4bit": True, "lora_variant": "dora", "precision": "bf16", "lora_dropout": 0.1},
        {"lora_rank": 8, "load_in_4bit": True, "four_bit_format": "fp4", "four_bit_compute": "fp32"},
        {"lora_rank": 8, "lora_targets": "query-value"},
        {"lora_rank": 8, "lora_variant": "dora", "lora_dropout": 0.1},
        {"lora_rank": 8, "lora_targets": "intermediate.dense,query", "lora_dropout": 0.1, "precision": "bf16"},
        *({"optimizer": name} for name in OPTIMIZERS if name != "adamw" and name not in (*EIGHT_BIT, *PAGED)),
        {"accumulation_steps": 5},
        {"zero_grad": "before-backward"},
        {"zero_grad": "zeros", "precision": "bf16"},
        {"zero_grad": "before-backward", "accumulation_steps": 2},
        {"gradients": "freed"},
        {"gradients": "freed", "optimizer": "sgd", "ema": True},
        {"gradients": "freed", "lora_rank": 8, "precision": "bf16"},
        {"clip_grad_norm": True},
        {"frozen_blocks": 1},
        {"attention": "eager"},
        {"attention": "sdpa"},
        {"frozen_blocks": 2, "ema": True},
        {"ema": True},
        {"ema": True, "lora_rank": 8, "optimizer": "sgd"},
        {"clip_grad_norm": True, "precision": "fp16", "optimizer": "sgd"},
        {"accumulation_steps": 2, "precision": "fp16"},
    ],
    ids=str,
)
def test_a_transformer_s_trace_is_the_real_step_within_a_hundred_bytes(changes):
    spec = tiny(**changes)
    traced = trace.record(trace.step_maker(spec), 16, ON_CPU).peak_live_bytes()
    assert traced == pytest.approx(real_peak(spec, 16), abs=100)


@pytest.mark.parametrize(
    ("changes", "peak_bytes"),
    [
        ({}, 101_441_864),
        ({"precision": "bf16", "accumulation_steps": 2}, 101_441_800),
        ({"clip_grad_norm": True, "precision": "fp16", "optimizer": "sgd"}, 35_368_164),
        ({"ema": True, "optimizer": "momentum"}, 70_457_640),
    ],
    ids=str,
)
def test_a_training_with_none_of_the_newer_settings_has_the_bytes_it_had_before_them(changes, peak_bytes):
    assert trace.record(trace.step_maker(tiny(**changes)), 16, ON_CPU).peak_live_bytes() == peak_bytes


@needs_fake_cuda
@pytest.mark.slow
def test_offloaded_activations_leave_the_card_during_the_forward_pass_and_come_back_in_the_backward_pass():
    plain, offloaded = (
        trace.record(trace.step_maker(tiny(offload_activations=moved)), 64, ON_A_CARD) for moved in (False, True)
    )
    assert offloaded.peak_live_bytes() < plain.peak_live_bytes()
    # the weights are saved for the backward pass too, and come back as copies
    assert "_to_copy" in {block.operator for block in offloaded.skeleton.blocks if block.phase == BACKWARD}
    assert held_after_forward(offloaded) < held_after_forward(plain) // 10


@needs_fake_cuda
@pytest.mark.slow
@pytest.mark.parametrize("gradients", ["kept", "freed"])
def test_of_a_state_on_the_host_the_card_holds_one_weight_s_at_a_time(gradients):
    kept, offloaded = (
        trace.record(trace.step_maker(tiny(gradients=gradients, offload_optimizer=moved)), 3, ON_A_CARD)
        for moved in (False, True)
    )
    blocks = zip(kept.skeleton.blocks, kept.sizes_bytes, strict=True)
    weights = [size for block, size in blocks if block.kind == PARAMETERS]
    assert not any(block.kind == STATE for block in offloaded.skeleton.blocks)
    saved = kept.peak_live_bytes() - offloaded.peak_live_bytes()
    assert 2 * (sum(weights) - 2 * max(weights)) < saved <= 2 * sum(weights)


def held_after_forward(recording):
    """The most bytes of activations that are live when a backward pass begins."""
    blocks, live, most, phase = recording.skeleton.blocks, {}, 0, None
    for event in recording.skeleton.events:
        if event < 0:
            live.pop(~event, None)
            continue
        if blocks[event].phase == BACKWARD and phase == FORWARD:
            most = max(most, sum(live.values()))
        phase = blocks[event].phase
        if blocks[event].kind == ACTIVATIONS:
            live[event] = recording.sizes_bytes[event]
    return most


@pytest.mark.slow
@pytest.mark.parametrize("name", EIGHT_BIT)
def test_a_trace_has_the_state_of_8_bits_tensor_for_tensor_and_lacks_the_tables(name):
    pytest.importorskip("bitsandbytes")
    spec = tiny(optimizer=name)
    traced = trace.record(trace.step_maker(spec), 16, ON_CPU)
    step = TrainingStep(spec, build(spec, CPU), CPU)
    step(2)
    tables = [step.optimizer.name2qmap[which] for which in ("dynamic", "udynamic")[: 1 if name == "lion-8bit" else 2]]
    state = [tensor for tensor in state_tensors(step) if all(tensor is not table for table in tables)]
    assert {t.dtype for t in state if t.dim() == 2} == {torch.uint8, torch.float32}  # small ones stay fp32
    blocks = zip(traced.skeleton.blocks, traced.sizes_bytes, strict=True)
    assert sorted(size for block, size in blocks if block.kind == STATE) == sorted(t.nbytes for t in state)
    assert 0 <= real_peak(spec, 16) - traced.peak_live_bytes() - sum(table.nbytes for table in tables) <= 100


@needs_fake_cuda
@pytest.mark.slow
@pytest.mark.parametrize("name", PAGED)
def test_a_card_holds_of_paged_state_the_small_tensors_and_the_scales(name):
    pytest.importorskip("bitsandbytes")
    traced = trace.record(trace.step_maker(tiny(optimizer=name)), 3, ON_A_CARD)
    blocks = list(zip(traced.skeleton.blocks, traced.sizes_bytes, strict=True))
    parameters = [size // 4 for block, size in blocks if block.kind == PARAMETERS]
    small, large = ([count for count in parameters if (count < 100_000) == is_small] for is_small in (True, False))
    if name == "paged-adamw-32bit":
        held = [4 * count for count in small]
    else:
        eight_bit = [count for count in small if count >= 4096]
        held = [4 * count for count in small if count < 4096] + eight_bit
        held += [4 * -(-count // 256) for count in (*eight_bit, *large)]
        held += [1024]  # the table of each of both moments, which all weights share
    assert large
    assert sorted(size for block, size in blocks if block.kind == STATE) == sorted(2 * held)


def test_what_is_moved_to_the_host_is_not_estimated_for_a_cpu_nor_where_no_card_can_be_traced(monkeypatch):
    with pytest.raises(SpecError, match="take adamw-8bit"):
        check(tiny(optimizer="paged-adamw-8bit"), None)
    with pytest.raises(SpecError, match="gradient_checkpointing saves activations"):
        check(tiny(offload_activations=True), None)
    monkeypatch.setattr(fake_cuda, "obstacle", lambda: "no fake cuda here")
    with pytest.raises(EstimateImpossible, match=r"stays on the device is not traced here \(no fake cuda here\)"):
        trace.memory_model(tiny(optimizer="paged-adamw-8bit"), find("a10"))
    with pytest.raises(EstimateImpossible, match="not traced here"):
        trace.memory_model(tiny(offload_activations=True), find("a10"))


@needs_fake_cuda
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "bf16"},
        {"precision": "bf16", "four_bit_format": "fp4", "four_bit_compute": "fp32"},
        {"precision": "bf16-pure", "lora_weights": "bf16"},
    ],
    ids=str,
)
def test_a_card_holds_of_weights_of_4_bits_what_a_real_model_does(changes):
    pytest.importorskip("bitsandbytes")
    spec = tiny(lora_rank=8, load_in_4bit=True, **changes)
    traced = trace.record(trace.step_maker(spec), 3, trace.conditions_for(find("a10"), spec.precision))
    built = build(replace(spec, device="cpu"), CPU)
    blocks = zip(traced.skeleton.blocks, traced.sizes_bytes, strict=True)
    held = sorted(size for block, size in blocks if block.kind in (PARAMETERS, BUFFERS))
    assert held == sorted(tensor.nbytes for tensor in (*built.model.parameters(), *built.model.buffers()))
    # to multiply, the weight of a layer is made in 16 bits, forwards and backwards
    of_one_layer = [b.phase for b in traced.skeleton.blocks if b.operator == "bitsandbytes::dequantize_4bit"]
    assert {FORWARD, BACKWARD} <= set(of_one_layer)


@pytest.mark.slow
@pytest.mark.parametrize("sequences", ["full", "padded", "packed"])
def test_rows_of_a_language_model_are_traced_as_they_are_filled(sequences):
    spec = decoder(device="cpu", sequences=sequences)
    traced = trace.record(trace.step_maker(spec), 4, ON_CPU).peak_live_bytes()
    assert traced == pytest.approx(real_peak(spec, 4), abs=100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"outputs": "released"},
        {"without_cache": True},
        {"loss_chunk_tokens": 16},
        {"loss_chunk_tokens": 16, "loss_chunk_logits": "recomputed", "outputs": "released"},
        {"loss_chunk_tokens": 24, "loss_chunk_logits": "recomputed", "lora_rank": 4, "precision": "bf16"},
    ],
    ids=str,
)
def test_what_a_loop_keeps_is_traced_as_it_is_measured(changes):
    spec = decoder(device="cpu", **changes)
    traced = trace.record(trace.step_maker(spec), 4, ON_CPU).peak_live_bytes()
    assert traced == pytest.approx(real_peak(spec, 4), abs=200)


@needs_fake_cuda
@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kernel"),
    [
        ({"gradient_checkpointing": True}, "flash"),  # without a cache, and a mask was traced that no real step makes
        ({"sequences": "packed"}, "efficient"),
        ({"sequences": "padded"}, "efficient"),
    ],
    ids=str,
)
def test_a_card_s_kernel_of_attention_follows_from_whether_rows_need_a_mask(changes, kernel):
    spec = decoder(precision="bf16", **changes)
    traced = trace.record(trace.step_maker(spec), 3, trace.conditions_for(find("a10"), spec.precision))
    kernels = {block.operator for block in traced.skeleton.blocks if "dot_product" in block.operator}
    assert kernels == {f"_scaled_dot_product_{kernel}_attention{ending}" for ending in ("", "_backward")}
