"""Traces of training steps: equal to real ones on the CPU, and as a card would run them."""

import gc
import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from engine.errors import EstimateImpossible, SpecError
from engine.estimate.batch_model import ACTIVATIONS, BUFFERS, PARAMETERS, STATE, WORKSPACES, BatchModel
from engine.estimate.gpus import find
from engine.estimate.predict import check, estimate_at, kernels_of_attention
from engine.estimate.tracing import attention, fake_cuda, trace
from engine.estimate.tracing.recorder import with_frees_in_order
from engine.estimate.tracing.reductions import buffer_bytes
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, profiled_step, recorded
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import Built, build, preload
from engine.progress import BACKWARD, FORWARD
from engine.settings.optimizers import OPTIMIZERS
from engine.spec import MEMORY_STEPS, RunSpec

CPU = torch.device("cpu")
ON_CPU = trace.Conditions("fake_cpu", None)
ON_A_CARD = trace.Conditions("fake_cuda", "sm80")
EIGHT_BIT = ("adamw-8bit", "lion-8bit")
PAGED = tuple(name for name, each in OPTIMIZERS.items() if each.unpaged)
needs_fake_cuda = pytest.mark.skipif(fake_cuda.obstacle() is not None, reason="this torch carries no fake cuda tensors")


@pytest.fixture(autouse=True)
def one_thread():
    """Real steps this small are slower on several threads, and not repeatable in time on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tiny(**changes):
    return RunSpec("bert-tiny", **{"sequence_length": 32, **changes})


def real_peak(spec, batch_size):
    bench = Bench(spec, Cpu(CPU), build(spec, CPU))
    step = TrainingStep(spec, bench.built, CPU)
    return max(profiled_step(bench, step, batch_size, recorded).allocated_bytes for _ in range(MEMORY_STEPS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"precision": "bf16"},
        {"precision": "fp16", "mode": "eval"},
        {"lora_rank": 8},
        {"lora_rank": 8, "precision": "bf16"},
        {"lora_rank": 8, "load_in_4bit": True},
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
    state = [tensor for tensor in step.state_tensors() if all(tensor is not table for table in tables)]
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


def decoder(**changes):
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 2, "vocab_size": 100, "max_position_embeddings": 64}
    return RunSpec("config", config=json.dumps(config), task="text-generation", sequence_length=64, **changes)


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


@pytest.mark.slow
def test_a_model_that_was_imported_before_is_traced_although_it_draws_truncated_normals():
    preload("modernbert")
    spec = RunSpec("modernbert", device="cpu", sequence_length=8)
    assert trace.record(trace.step_maker(spec), 3, ON_CPU).peak_live_bytes() > spec.fixed_bytes


@pytest.mark.slow
def test_a_head_that_adapters_copy_is_traced_again_and_again():
    spec = tiny(lora_rank=8)  # copies of fake tensors crashed the process at one of the next collections of garbage
    peaks = {trace.record(trace.step_maker(spec), 4, ON_CPU).peak_live_bytes() for _ in range(4) if gc.collect() >= 0}
    assert len(peaks) == 1


@pytest.mark.parametrize(
    "spec",
    [tiny(precision="bf16-pure"), RunSpec("convnext-tiny", device="cpu"), RunSpec("deeplabv3-resnet50", device="cpu")],
    ids=lambda spec: spec.model,
)
def test_what_a_cpu_takes_unseen_buffers_for_is_not_estimated_for_it(spec):
    with pytest.raises(EstimateImpossible, match="measure it"):
        trace.memory_model(spec, None)


@pytest.mark.parametrize("card", [None, "a10"])
def test_channels_last_is_not_estimated(card):
    with pytest.raises(EstimateImpossible, match="channels last"):
        trace.memory_model(RunSpec("resnet18", channels_last=True), card and find(card))


def test_kernels_of_another_package_are_not_estimated():
    with pytest.raises(EstimateImpossible, match="flash_attention_2 cannot be traced"):
        trace.memory_model(tiny(attention="flash_attention_2", precision="bf16"), find("a10"))


def test_a_compiled_model_is_not_estimated():
    with pytest.raises(EstimateImpossible, match=r"torch\.compile .* measure it"):
        trace.memory_model(tiny(torch_compile=True), find("a100-40gb"))


def test_checkpointing_lacks_only_the_random_state_that_it_keeps():
    spec = tiny(gradient_checkpointing=True)
    traced = trace.record(trace.step_maker(spec), 16, ON_CPU).peak_live_bytes()
    assert 0 <= real_peak(spec, 16) - traced < 20_000


@pytest.mark.slow
def test_a_convolutional_network_s_trace_has_the_copies_that_onednn_makes():
    spec = RunSpec("resnet18", image_size=64, optimizer="none")
    traced = trace.record(trace.step_maker(spec), 8, ON_CPU).peak_live_bytes()
    assert traced == pytest.approx(real_peak(spec, 8), rel=0.001)


@pytest.fixture(scope="module")
def on_a_card():
    return trace.memory_model(tiny(), find("a100-40gb"))


@needs_fake_cuda
def test_dropout_allocates_its_mask_before_its_result_on_a_card():
    traced = trace.record(trace.step_maker(tiny(frozen_blocks=1)), 16, ON_A_CARD, steps=1)
    blocks = zip(traced.skeleton.blocks, traced.sizes_bytes, strict=True)
    sizes = [size for block, size in blocks if block.operator == "native_dropout"]
    masks, results = sizes[::2], sizes[1::2]
    assert len(masks) > 1
    assert results == [4 * size for size in masks]  # a byte and a float for each value


@pytest.mark.slow
@needs_fake_cuda
def test_the_line_through_two_sizes_is_what_a_third_traced(on_a_card):
    traced = trace.record(trace.step_maker(tiny()), 13, ON_A_CARD)
    assert on_a_card.is_affine
    assert tuple(on_a_card.at(13).sizes_bytes) == traced.sizes_bytes


@needs_fake_cuda
def test_the_buffers_of_sums_grow_with_the_batch_and_then_no_more(on_a_card):
    processors = find("a100-40gb").processors
    largest = [max(buffer_bytes(s, processors) for _, s in on_a_card.at(size).sums()) for size in (1, 256, 2048, 4096)]
    assert 0 == largest[0] < largest[1] < largest[2] == largest[3] == 113_246_208
    assert BatchModel.from_dict(on_a_card.to_dict()).at(256) == on_a_card.at(256)


@pytest.mark.slow
@needs_fake_cuda
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_a_straight_line_too(precision):
    assert trace.memory_model(tiny(precision=precision), find("h100-80gb")).is_affine


@pytest.mark.slow
@needs_fake_cuda
def test_one_trace_tells_which_families_would_have_run_other_kernels():
    alike = {mode: set(attention.FAMILIES) for mode in ("train", "eval")}
    for mode, families in alike.items():
        spec = tiny(precision="fp16", mode=mode)
        trace.record(trace.step_maker(spec), 2, ON_A_CARD, families)
    assert alike["train"] == set(attention.FAMILIES)  # a mask, and a dropout that cuDNN does not take
    assert alike["eval"] == {"before_sm80", "sm80"}


def test_frees_between_two_allocations_have_one_order_and_never_cross_a_step():
    assert with_frees_in_order([0, 1, 2, ~2, ~0, ~1, 3], [6]) == [0, 1, 2, ~0, ~1, ~2, 3]
    assert with_frees_in_order([0, 1, ~1, ~0], [3]) == [0, 1, ~1, ~0]


@needs_fake_cuda
def test_the_kinds_hold_what_they_are_named_after(on_a_card):
    kinds = estimate_at(on_a_card, find("a100-40gb"), 8).by_kind
    assert kinds.parameters_bytes == pytest.approx(4 * 4_386_178, rel=0.01)
    assert kinds.optimizer_state_bytes == pytest.approx(8 * 4_386_178, rel=0.01)
    assert kinds.workspaces_bytes == pytest.approx(2 * find("a100-40gb").cublas_workspace_bytes, rel=0.25)


@needs_fake_cuda
def test_two_threads_multiply_and_each_has_its_workspace(on_a_card):
    workspaces = [block.phase for block in on_a_card.at(8).skeleton.blocks if block.kind == WORKSPACES]
    assert workspaces == ["forward", "backward"]


@pytest.mark.slow
@needs_fake_cuda
@settings(max_examples=30, deadline=None)
@given(sizes=st.tuples(st.integers(1, 8000), st.integers(1, 8000)))
def test_a_larger_batch_never_needs_less(on_a_card, sizes):
    """What the steps ask for is monotone. What the allocator makes of it is not: a block that is not split counts
    whole, so allocated bytes may fall by part of a per cent, and reserved ones by more.
    """
    small, large = sorted(sizes)
    assert on_a_card.at(small).peak_live_bytes() <= on_a_card.at(large).peak_live_bytes()
    peaks = [estimate_at(on_a_card, find("a100-40gb"), size).peak_allocated_bytes for size in (small, large)]
    assert peaks[0] <= peaks[1] * 1.02


@pytest.mark.slow
@needs_fake_cuda
@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16"])
def test_every_precision_is_traced_as_on_a_card(precision):
    recording = trace.record(trace.step_maker(tiny(precision=precision)), 4, ON_A_CARD)
    full = trace.record(trace.step_maker(tiny()), 4, ON_A_CARD)
    assert sum(block.kind == STATE for block in recording.skeleton.blocks) > 0
    assert (activations(recording) < activations(full)) == (precision != "tf32")


def activations(recording):
    pairs = zip(recording.skeleton.blocks, recording.sizes_bytes, strict=True)
    return sum(size for block, size in pairs if block.kind == ACTIVATIONS and block.operator == "addmm")


@pytest.mark.slow
@needs_fake_cuda
@pytest.mark.parametrize(("optimizer", "states"), [("none", 0), ("sgd", 0), ("momentum", 1), ("adamw", 2)])
def test_each_optimizer_keeps_its_own_state(optimizer, states):
    recording = trace.record(trace.step_maker(tiny(optimizer=optimizer)), 4, ON_A_CARD)
    count = sum(block.kind == STATE for block in recording.skeleton.blocks)
    parameters = sum(block.kind == "parameters" for block in recording.skeleton.blocks)
    assert count == states * parameters


@needs_fake_cuda
def test_adamw_takes_its_foreach_path_as_on_a_card(on_a_card):
    assert any(block.operator.startswith("_foreach") for block in on_a_card.at(8).skeleton.blocks)


@pytest.mark.slow
@needs_fake_cuda
def test_pretrained_weights_have_the_shapes_of_random_ones():
    traced = [trace.record(trace.step_maker(tiny(pretrained=p)), 2, ON_A_CARD).sizes_bytes for p in (True, False)]
    assert traced[0] == traced[1]


@pytest.mark.slow
def test_everything_changed_for_a_trace_is_as_it_was_afterwards():
    before = (nn.Module.to, functional.scaled_dot_product_attention, nn.init.trunc_normal_)
    trace.record(trace.step_maker(tiny()), 2, ON_CPU)
    assert before == (nn.Module.to, functional.scaled_dot_product_attention, nn.init.trunc_normal_)


class PicksWhatIsPositive(nn.Module):
    """Allocates as much as its data says."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, batch):
        return (batch["x"][batch["x"] > 0] * self.weight.sum()).sum()


def test_a_model_whose_memory_depends_on_its_data_is_refused_with_the_advice_to_measure():
    def make(device):
        model = PicksWhatIsPositive()
        built = Built(model, lambda n: {"x": torch.ones(n, 4, device=device)}, model, lambda loss, _: loss)
        return TrainingStep(tiny(), built, device)

    with pytest.raises(EstimateImpossible, match="depends on its data.*measure it"):
        trace.record(make, 2, ON_CPU)


def test_a_step_that_fails_is_refused_with_what_it_said():
    def make(device):
        raise RuntimeError("no such thing")

    with pytest.raises(EstimateImpossible, match="RuntimeError: no such thing"):
        trace.record(make, 2, ON_CPU)


@pytest.mark.parametrize(
    ("gpu", "precision", "family"),
    [
        ("t4", "fp32", "sm80"),
        ("t4", "fp16", "before_sm80"),
        ("a10", "bf16", "sm80"),
        ("h100-80gb", "bf16", "cudnn_first"),
        ("h100-80gb", "fp32", "sm80"),
        ("mi300x", "bf16", "sm80"),
    ],
)
def test_cards_that_choose_the_same_kernels_are_one_family(gpu, precision, family):
    assert attention.family_of(find(gpu), precision) == family


@pytest.mark.parametrize(
    ("family", "dtype", "has_mask", "dropout", "kernel"),
    [
        ("sm80", torch.float32, False, 0.0, "efficient"),
        ("sm80", torch.bfloat16, False, 0.1, "flash"),
        ("sm80", torch.bfloat16, True, 0.1, "efficient"),
        ("before_sm80", torch.float16, False, 0.0, "efficient"),
        ("before_sm80", torch.bfloat16, False, 0.0, "math"),
        ("cudnn_first", torch.bfloat16, True, 0.0, "cudnn"),
        ("cudnn_first", torch.bfloat16, False, 0.1, "flash"),
        ("sm80", torch.float64, False, 0.0, "math"),
    ],
)
def test_the_first_kernel_that_takes_the_call_is_chosen(family, dtype, has_mask, dropout, kernel):
    heads = torch.empty(2, 4, 32, 64, dtype=dtype, device="meta")
    mask = torch.empty(2, 1, 32, 32, dtype=dtype, device="meta") if has_mask else None
    call = attention._Call(heads, heads, heads, mask, dropout, False, None, False)
    assert attention.kernel_of(call, family) == kernel


def gemma(**changes):
    config = {"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 6}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "sliding_window": 16}
    config |= {"vocab_size": 100, "max_position_embeddings": 64}
    return RunSpec("config", config=json.dumps(config), task="text-generation", precision="bf16", **changes)


@needs_fake_cuda
@pytest.mark.slow
def test_the_length_at_which_attention_changes_its_kernel_is_that_of_the_sliding_window():
    window = gemma().workload.window_tokens
    kernels = {
        length: kernels_of_attention(
            trace.record(trace.step_maker(gemma(sequence_length=length)), 3, ON_A_CARD, steps=1)
        )
        for length in (window - 1, window)
    }
    assert kernels == {15: ("flash",), 16: ("efficient", "flash")}


def test_a_model_without_a_window_or_with_one_that_no_text_fills_has_no_length_at_which_its_kernel_changes():
    assert RunSpec("mistral-7b", sequence_length=32_768).workload.window_tokens is None  # v0.3 has none
    assert decoder().workload.window_tokens is None
    unused = {
        "model_type": "qwen2",
        "vocab_size": 100,
        "sliding_window": 16,
        "use_sliding_window": False,
        "max_position_embeddings": 64,
    }
    spec = RunSpec("config", config=json.dumps(unused), task="text-generation")
    assert spec.workload.window_tokens is None


@needs_fake_cuda
def test_the_parts_of_the_gradients_norms_are_a_block_of_their_own():
    spec = tiny(clip_grad_norm=True)
    recording = trace.record(trace.step_maker(spec), 3, ON_A_CARD)
    norms = [
        (size, block.phase)
        for block, size in zip(recording.skeleton.blocks, recording.sizes_bytes, strict=True)
        if block.operator == "_foreach_norm" and size > 4
    ]
    # 41 gradients, and 60 chunks of the largest one: what the real allocator of a CUDA build gives for it
    assert norms == [(41 * 60 * 4, "optimizer_step")] * MEMORY_STEPS
