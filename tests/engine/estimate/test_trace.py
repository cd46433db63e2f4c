"""Traces of training steps: equal to real ones on the CPU, and as a card would run them."""

import gc
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from engine.errors import EstimateImpossible
from engine.estimate.attention_family import FAMILIES, family_of
from engine.estimate.batch_model import ACTIVATIONS, STATE, WORKSPACES, BatchModel, with_frees_in_order
from engine.estimate.gpus import find
from engine.estimate.predict import estimate_at, kernels_of_attention
from engine.estimate.reductions import buffer_bytes
from engine.estimate.tracing import attention, trace
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import Built, preload
from engine.settings.spec import MEMORY_STEPS, RunSpec
from tests.engine.estimate.small_trainings import ON_A_CARD, ON_CPU, decoder, needs_fake_cuda, real_peak, tiny

pytestmark = pytest.mark.usefixtures("one_thread")


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
@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="without AVX-512 oneDNN takes other buffers"
)
def test_a_convolutional_network_s_trace_has_the_copies_that_onednn_makes():
    spec = RunSpec("resnet18", image_size=64, optimizer="none")
    traced = trace.record(trace.step_maker(spec), 8, ON_CPU).peak_live_bytes()
    assert traced == pytest.approx(real_peak(spec, 8), rel=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "is_exact"), [("AVX2", False), ("AVX512", True)])
def test_a_convolutional_network_on_a_cpu_without_avx_512_is_estimated_as_approximate(
    capability, is_exact, monkeypatch
):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    of_images = trace.memory_model(RunSpec("resnet18", image_size=64, optimizer="none"), None)
    assert (of_images.approximate_because is None) == is_exact
    assert trace.memory_model(tiny(optimizer="none"), None).approximate_because is None


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
    assert isinstance(on_a_card, BatchModel)
    assert tuple(on_a_card.at(13).sizes_bytes) == traced.sizes_bytes


@needs_fake_cuda
def test_the_buffers_of_sums_grow_with_the_batch_and_then_no_more(on_a_card):
    processors = find("a100-40gb").processors
    largest = [max(buffer_bytes(s, processors) for s in on_a_card.at(size).sums()) for size in (1, 256, 2048, 4096)]
    assert 0 == largest[0] < largest[1] < largest[2] == largest[3] == 113_246_208
    assert BatchModel.from_dict(on_a_card.to_dict()).at(256) == on_a_card.at(256)


@pytest.mark.slow
@needs_fake_cuda
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_a_straight_line_too(precision):
    assert isinstance(trace.memory_model(tiny(precision=precision), find("h100-80gb")), BatchModel)


@pytest.mark.slow
@needs_fake_cuda
def test_one_trace_tells_which_families_would_have_run_other_kernels():
    alike = {mode: set(FAMILIES) for mode in ("train", "eval")}
    for mode, families in alike.items():
        spec = tiny(precision="fp16", mode=mode)
        trace.record(trace.step_maker(spec), 2, ON_A_CARD, families)
    assert alike["train"] == set(FAMILIES)  # a mask, and a dropout that cuDNN does not take
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
    assert family_of(find(gpu), precision) == family


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
