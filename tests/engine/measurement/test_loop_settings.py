"""What a loop keeps of a step, a loss in chunks, rows of texts, and ranks: real models of two blocks on the CPU."""

import json
import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist

from engine.errors import SpecError
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, run_probe
from engine.measurement.ranks import step_of_this_rank
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import build
from engine.settings.catalog.from_config import MODEL_TYPES
from engine.settings.ranks.emulated_group import emulated_ranks
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from tests.engine.measurement.tensors import gradients

CPU = torch.device("cpu")
TOKENS, VOCABULARY, BATCH_SIZE = 24, 1_000, 6
LOGITS_BYTES = 4 * BATCH_SIZE * TOKENS * VOCABULARY
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
OTHER_NAMES = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 2},
    "opt": {**SIZES, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "gemma2": {**SIZES, "num_key_value_heads": 1, "head_dim": 16, "final_logit_softcapping": 0.5},
    "granite": {**SIZES, "logits_scaling": 4.0},
}
DECODERS = [name for name, each in MODEL_TYPES.items() if each.task == "text-generation"]


def spec_of(kind="llama", **changes):
    sizes = OTHER_NAMES.get(kind, {**SIZES, "num_key_value_heads": 2, "num_experts": 2, "num_experts_per_tok": 1})
    unused = {"falcon", "phi", "gpt_neox", "stablelm"} & {kind}
    sizes = {name: size for name, size in sizes.items() if not (unused and name.startswith("num_experts"))}
    config = {"model_type": kind, "vocab_size": VOCABULARY, "pad_token_id": 0, **sizes}
    of_training = {"device": "cpu", "mode": "eval", "sequence_length": TOKENS, "optimizer": "sgd", **changes}
    return RunSpec("config", config=json.dumps(config), task="text-generation", **of_training)


def peak_bytes(kind="llama", **changes):
    spec, device = spec_of(kind, **changes), Cpu(CPU)
    device.limit_bytes = GIB
    probe = run_probe(Bench(spec, device, build(spec, CPU)), BATCH_SIZE, with_kinds=False)
    assert probe.peak_allocated_bytes is not None
    return probe.peak_allocated_bytes


def loss_and_gradients(spec, state, batch):
    built = build(spec, CPU)
    built.model.load_state_dict(state)
    step = TrainingStep(spec, built, CPU)
    loss = step.forward(batch)
    loss.backward()
    return loss.detach(), {name: parameter.grad for name, parameter in built.model.named_parameters()}


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("logits", ["kept", "recomputed"])
def test_a_loss_in_chunks_is_the_model_s_own_loss_with_the_same_gradients(kind, logits):
    whole, chunked = spec_of(kind), spec_of(kind, loss_chunk_tokens=7, loss_chunk_logits=logits)
    first = build(spec_of(kind, sequences="padded"), CPU)
    state, batch = first.model.state_dict(), first.make_batch(3)
    loss, gradients = loss_and_gradients(whole, state, batch)
    ours, our_gradients = loss_and_gradients(chunked, state, batch)
    torch.testing.assert_close(ours, loss)
    torch.testing.assert_close(our_gradients, gradients, rtol=1e-4, atol=1e-6)


def test_released_outputs_spare_the_old_logits_during_the_next_forward_pass():
    assert peak_bytes() - peak_bytes(outputs="released") == pytest.approx(LOGITS_BYTES, rel=0.1)


def test_without_a_cache_the_copies_of_keys_and_values_are_not_made():
    kept, without = peak_bytes("gpt2"), peak_bytes("gpt2", without_cache=True)
    keys_and_values_bytes = 2 * SIZES["num_hidden_layers"] * 4 * BATCH_SIZE * TOKENS * SIZES["hidden_size"]
    assert kept - without >= keys_and_values_bytes


def test_the_smaller_the_chunks_the_less_memory_the_logits_take():
    plain = {"outputs": "released"}
    whole = peak_bytes(**plain)
    kept = peak_bytes(**plain, loss_chunk_tokens=4)
    recomputed = [peak_bytes(**plain, loss_chunk_tokens=n, loss_chunk_logits="recomputed") for n in (12, 4)]
    assert whole > kept > recomputed[0] > recomputed[1]
    assert whole - recomputed[1] > LOGITS_BYTES


def test_a_loss_in_half_precision_makes_no_copy_of_the_logits_in_fp32():
    pure = {"precision": "bf16-pure"}
    assert peak_bytes(**pure) - peak_bytes(**pure, half_precision_loss=True) >= LOGITS_BYTES


def test_adapters_learn_from_a_loss_in_chunks():
    spec = spec_of(lora_rank=2, loss_chunk_tokens=8, loss_chunk_logits="recomputed", gradient_checkpointing=True)
    step = TrainingStep(spec, build(spec, CPU), CPU)
    step(2)
    assert gradients(step)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"model": "bert", "without_cache": True}, "without_cache: bert is no decoder"),
        ({"model": "bert", "loss_chunk_tokens": 8}, "loss_chunk_tokens: bert is no language model"),
        ({"model": "gpt2-lm", "loss_chunk_logits": "recomputed"}, "needs a loss in chunks"),
        ({"model": "gpt2-lm", "loss_chunk_tokens": 8, "torch_compile": True}, "torch.compile"),
        ({"model": "gpt2-lm", "half_precision_loss": True, "precision": "bf16"}, "needs precision bf16-pure"),
        ({"model": "gpt2-lm", "liger_loss": True, "device": "cpu"}, "liger_loss: needs a CUDA device, not cpu"),
        ({"model": "gpt2-lm", "liger_loss": True, "loss_chunk_tokens": 8}, "does not go with loss_chunk_tokens"),
        ({"model": "gpt2-lm", "outputs": "dropped"}, "outputs: 'dropped' is not offered"),
        ({"model": "gpt2-lm", "loss_chunk_tokens": 0}, "loss_chunk_tokens: 0 is out of range"),
    ],
    ids=str,
)
def test_settings_of_the_loop_that_cannot_be_are_refused_by_name(given, reason):
    with pytest.raises(SpecError, match=reason):
        RunSpec(**given)


GPT2 = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 32}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 50,
}


def built(config, sequences, **changes):
    of_training = {"device": "cpu", "mode": "eval", "sequence_length": 16, "sequences": sequences, **changes}
    return build(RunSpec("config", config=json.dumps(config), task="text-generation", **of_training), CPU)


def test_full_rows_have_neither_a_mask_nor_positions():
    assert built(LLAMA, "full").make_batch(3).keys() == {"input_ids", "labels"}


def test_padded_rows_are_as_long_as_their_longest_and_padding_is_not_learned():
    batch = built(LLAMA, "padded", sequence_length=15).make_batch(3)
    assert batch["attention_mask"].sum(dim=1).tolist() == [15, 8, 8]
    assert torch.equal(batch["labels"] == -100, batch["attention_mask"] == 0)


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
@pytest.mark.parametrize(("sequences", "sees_the_others"), [("packed", False), ("full", True)])
def test_packed_sequences_of_a_row_do_not_see_each_other(config, sequences, sees_the_others):
    one = built(config, sequences)
    batch = one.make_batch(2)
    if sequences == "packed":
        assert batch["position_ids"].tolist() == [[0, 1, 2, 3] * 4] * 2
    before = one.forward(batch).logits
    batch["input_ids"][:, :4] = (batch["input_ids"][:, :4] + 1) % 50
    after = one.forward(batch).logits
    assert not torch.equal(before[:, 3], after[:, 3])
    assert torch.equal(before[:, 4:], after[:, 4:]) is not sees_the_others


@pytest.mark.parametrize("model", ["bert", "t5-small", "resnet18"])
def test_only_language_models_have_rows_to_fill(model):
    with pytest.raises(SpecError, match=f"sequences: {model} is no language model"):
        RunSpec(model, sequences="packed")


LOOP: dict[str, Any] = {"accumulation_steps": 2, "clip_grad_norm": True, "ema": True}


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "zero1"])
def test_a_step_of_each_strategy_learns(strategy: str) -> None:
    spec = RunSpec("bert-tiny", ranks=2, strategy=strategy, sequence_length=8, **LOOP)
    with emulated_ranks(1, 2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.init_process_group("gloo")
        built = build(spec, CPU)
        step = step_of_this_rank(spec, built, CPU)
        before = [_local(weight).clone() for weight in built.model.parameters()]
        step.begin()
        step(2)
        changed = [not torch.equal(_local(a), b) for a, b in zip(built.model.parameters(), before, strict=True)]
    assert any(changed)
    assert next(built.model.parameters()).grad is not None


def _local(weight: Any) -> torch.Tensor:
    held: torch.Tensor = getattr(weight, "_local_tensor", weight)
    return held.detach()
