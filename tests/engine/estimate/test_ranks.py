"""Estimates of rank 0 of several GPUs: as emulated with real tensors, and refused by name where nothing runs."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.estimated_ranks import emulated_peak
from engine.describe.ranks import HOW_COMPARED
from engine.errors import EstimateImpossible, SpecError
from engine.estimate.allocator import Allocator
from engine.estimate.batch_model import BatchModel, MemoryBlock, Skeleton
from engine.estimate.gpus import find
from engine.estimate.known_errors import known_error
from engine.estimate.predict import check, estimate, limit_bytes_of
from engine.estimate.stream_allocator import StreamAllocator
from engine.estimate.tracing import trace
from engine.measurement.workloads import build_model, series_of_blocks
from engine.settings.spec import RunSpec, measured_spec
from engine.text.units import MIB, format_percent
from tests.engine.estimate.small_trainings import ON_A_CARD, ON_CPU, decoder, needs_fake_cuda, tiny
from tests.engine.estimate.synthetic_models import model

pytestmark = pytest.mark.usefixtures("one_thread")
STRATEGIES = ("ddp", "fsdp", "zero1")


def recorded(spec, batch_size, conditions=ON_CPU, steps=3):
    sharded_over = spec.ranks if spec.strategy == "fsdp" else 1
    return trace.record(trace.step_maker(spec), batch_size, replace(conditions, sharded_over=sharded_over), steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_estimate_is_what_two_emulated_ranks_with_real_tensors_hold(strategy):
    spec = decoder(ranks=2, strategy=strategy)
    assert recorded(spec, 8).peak_live_bytes() == pytest.approx(emulated_peak(spec, 8), rel=0.001)


@pytest.mark.slow
def test_a_deep_sharded_model_is_told_from_few_of_its_layers(monkeypatch):
    monkeypatch.setattr(trace, "MANY_LAYERS", 5)
    config = json.loads(decoder().config) | {"num_hidden_layers": 5}
    spec = RunSpec(
        "config", config=json.dumps(config), task="text-generation", sequence_length=64, ranks=4, strategy="fsdp"
    )
    told, whole = trace.model_of_one_size(spec, None).at(4), recorded(spec, 4)
    assert trace._equal_layers(spec) == 5
    assert (told.skeleton.events, told.peak_live_bytes()) == (whole.skeleton.events, whole.peak_live_bytes())


def test_buckets_are_filled_by_size_so_few_layers_do_not_tell_them():
    assert trace._equal_layers(RunSpec("gpt2", ranks=2, strategy="ddp")) is None
    assert trace._equal_layers(RunSpec("gpt2", ranks=2, strategy="fsdp")) == 12


@needs_fake_cuda
def test_gathered_weights_lie_in_memory_of_their_own_stream_and_are_named():
    before = sys.excepthook
    recording = recorded(tiny(ranks=2, strategy="fsdp"), 4, ON_A_CARD, steps=1)
    streams = {block.stream for block in recording.skeleton.blocks if block.kind == "communication"}
    assert len(streams) > 1
    assert 0 in streams
    assert not torch.distributed.is_initialized()
    assert sys.excepthook is before


@given(st.lists(st.integers(1, 40 * MIB), min_size=1, max_size=40), st.data())
def test_streams_that_are_all_the_same_change_nothing_and_others_only_reserve_more(sizes, data):
    streams = data.draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    events = [event for index in range(len(sizes)) for event in ([index] if index % 3 else [index, ~index])]
    plain, alike, apart = Allocator(), StreamAllocator([0] * len(sizes)), StreamAllocator(streams)
    for memory in (plain, alike, apart):
        memory.play(events, sizes, [0] * len(sizes))
    assert (alike.peak_reserved_bytes, alike.peak_allocated_bytes) == (
        plain.peak_reserved_bytes,
        plain.peak_allocated_bytes,
    )
    assert apart.reserved_bytes >= apart.allocated_bytes


def test_memory_that_one_stream_freed_is_not_used_by_another_and_is_released_under_a_limit():
    memory = StreamAllocator([0, 1, 0], limit_bytes=60 * MIB)
    memory.play([0, ~0, 1], [40 * MIB, 20 * MIB, 40 * MIB], [0] * 3)
    assert memory.reserved_bytes == 60 * MIB
    memory.free(1)
    memory.allocate(2, 50 * MIB)
    assert (memory.reserved_bytes, memory.retries) == (50 * MIB, 1)


def test_a_stored_model_keeps_the_streams_of_its_blocks():
    blocks = (MemoryBlock("communication", "forward", "all_gather", None, 1), MemoryBlock("activations", None, "mm"))
    stored = BatchModel(Skeleton(blocks, (0, 1), (0,)), (1, 2), (0, 1), (3, 5), "fake_cuda")
    read = BatchModel.from_dict(json.loads(json.dumps(stored.to_dict())))
    assert read.skeleton == stored.skeleton
    assert read.skeleton.streams == (1, 0)


def test_every_stack_of_layers_is_sharded_of_an_encoder_and_a_decoder_both():
    with torch.device("meta"):
        made = build_model(RunSpec("t5-small"))
    blocks = series_of_blocks(made)
    assert [type(block).__name__ for block in blocks] == ["T5Block"] * 12


def test_the_library_s_memory_is_taken_from_the_card_as_published_or_as_given():
    card, spec = find("a100-80gb"), tiny(ranks=8, strategy="ddp")
    alone = limit_bytes_of(tiny(), card)
    assert alone - limit_bytes_of(tiny(ranks=2, strategy="ddp"), card) == 544 * MIB
    assert alone - limit_bytes_of(spec, card) == 688 * MIB
    given_bytes = tiny(ranks=8, strategy="ddp", communication_bytes=10 * MIB)
    assert alone - limit_bytes_of(given_bytes, card) == 10 * MIB
    made = estimate(spec, card, model(), seconds=0, versions={})
    at = made.at_batch_size(1) or made.at[0]
    assert at.device_used_bytes == at.peak_reserved_bytes + card.context_bytes + 688 * MIB
    assert (made.place, made.global_batch_size(4)) == ("8 x NVIDIA A100 SXM4 80 GB", 32)
    assert made.known_error is None
    assert known_error(tiny(), card) is not None


@pytest.mark.parametrize(
    ("changed", "field", "help_"),
    [
        ({"ranks": 2, "strategy": ""}, "strategy", "ddp, fsdp, zero1"),
        ({"ranks": 1}, "ranks", "2 or more"),
        ({"ranks": 1, "strategy": "", "communication_bytes": 1}, "communication_bytes", "ranks"),
        ({"gradients": "freed"}, "gradients", "keep"),
        ({"offload_activations": True}, "offload_activations", "gradient_checkpointing"),
        ({"offload_optimizer": True}, "offload_optimizer", "fsdp"),
        ({"precision": "fp16"}, "precision", "bf16"),
        ({"optimizer": "adamw-8bit"}, "optimizer", "adamw"),
        ({"optimizer": "adafactor"}, "optimizer", "ddp"),
        ({"strategy": "zero1", "optimizer": "paged-adamw-8bit"}, "optimizer", "ddp"),
        ({"strategy": "zero1", "optimizer": "none"}, "strategy", "ddp"),
        ({"lora_rank": 8, "load_in_4bit": True}, "load_in_4bit", "LoRA alone"),
        ({"lora_rank": 8, "lora_variant": "dora"}, "lora_variant", "plain"),
        ({"device": "mps"}, "ranks", "CUDA"),
    ],
)
def test_what_several_gpus_do_not_train_is_refused_by_name_with_what_helps(changed, field, help_):
    with pytest.raises(SpecError, match=help_) as refused:
        RunSpec("bert-tiny", **{"ranks": 2, "strategy": "fsdp", **changed})
    assert refused.value.field == field


def test_a_loss_that_calls_parts_of_the_model_is_refused_with_shards():
    with pytest.raises(SpecError, match="leave it out"):
        RunSpec("llama-3.2-1b", ranks=2, strategy="fsdp", loss_chunk_tokens=32)


def test_one_process_trains_on_one_gpu_and_the_refusal_names_what_measures_several():
    with pytest.raises(SpecError, match=r"bert-tiny --ranks 2 --strategy ddp`, emulated by --emulate-ranks 2"):
        measured_spec({"model": "bert-tiny", "ranks": 2, "strategy": "ddp"})
    with pytest.raises(SpecError, match="GPUs"):
        check(tiny(ranks=2, strategy="ddp"), None)


def test_a_process_that_is_a_rank_already_is_told_to_estimate_elsewhere(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(EstimateImpossible, match="process"):
        recorded(tiny(ranks=2, strategy="fsdp"), 2)


def test_the_least_that_one_gpu_holds_falls_with_what_is_sharded():
    held = [RunSpec("bert").fixed_bytes]
    held += [RunSpec("bert", ranks=8, strategy=strategy).fixed_bytes for strategy in STRATEGIES]
    one, ddp, fsdp, zero1 = held
    assert one == ddp
    assert all(less > more for less, more in pairwise([ddp, zero1, fsdp]))
    assert fsdp == one // 8


def test_the_comparison_with_emulated_ranks_is_as_close_as_the_documents_say():
    root = Path(__file__).resolve().parents[3]
    found = json.loads((root / "benchmarks/results/estimated_ranks.json").read_text())
    errors = [abs(row["estimated_bytes"] / row["emulated_bytes"] - 1) for row in found["rows"]]
    assert len(errors) == found["summary"]["cases"] == 60
    assert f"{max(errors):.3%}" == "0.024%"
    assert "Within 0.024 %" in (root / "docs/estimates.md").read_text()
    assert "within 0.024 % of emulated ranks" in HOW_COMPARED


def test_the_error_said_of_several_gpus_is_that_of_the_published_figures():
    found = json.loads((Path(__file__).resolve().parents[3] / "benchmarks/results/published_ranks.json").read_text())
    errors = [abs(row["error_fraction"]) for row in found["rows"] if row["not_scored_because"] is None]
    typical, worst = format_percent(median(errors)), format_percent(max(errors))
    assert HOW_COMPARED.startswith(f"typically {typical}, at worst {worst} in {len(errors)} published figures")
