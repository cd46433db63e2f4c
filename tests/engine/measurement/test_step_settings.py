"""What the settings of a training do to its step: real ones, of a tiny model on the CPU."""

import dataclasses

import pytest
import torch
from torch.optim import swa_utils

from engine.errors import SpecError
from engine.facts.result import Outcome
from engine.measurement import optimizers
from engine.measurement.device import Cpu
from engine.measurement.environment import check_environment
from engine.measurement.probe import Bench, run_probe
from engine.measurement.step import EMA_DECAY, MAX_GRADIENT_NORM, TrainingStep
from engine.measurement.timing import BlockTimer
from engine.measurement.workloads import build
from engine.race.speed.comparison import SpeedComparison, TimedBlock
from engine.race.speed.rounds import Candidates
from engine.settings.optimizers import OPTIMIZERS
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from tests.engine.measurement.tensors import gradients, state_tensors

CPU = torch.device("cpu")
PARAMETERS_BYTES = 4 * 4_386_178


def bench(model: str = "bert-tiny", **settings) -> Bench:
    size = {"sequence_length": 32} if model == "bert-tiny" else {"image_size": 64}
    spec = RunSpec(model, device="cpu", **{**size, **settings})
    device = Cpu(CPU)
    device.limit_bytes = GIB
    return Bench(spec, device, build(spec, CPU))


def step_of(one: Bench) -> TrainingStep:
    return TrainingStep(one.spec, one.built, CPU)


def peak_bytes(batch_size: int, **settings) -> int:
    probe = run_probe(bench(**settings), batch_size, with_kinds=False)
    assert probe.peak_allocated_bytes is not None
    return probe.peak_allocated_bytes


def test_accumulated_gradients_are_the_mean_over_the_micro_batches():
    one = bench(sequence_length=8, accumulation_steps=3, optimizer="none", mode="eval")
    batches = [one.built.make_batch(2) for _ in range(3)]
    waiting = iter(batches)
    object.__setattr__(one.built, "make_batch", lambda _: next(waiting))
    step = step_of(one)
    step(2)
    accumulated = [gradient.clone() for gradient in gradients(step)]
    whole = {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}
    step.clear_gradients()
    step.forward(whole).backward()
    for ours, theirs in zip(accumulated, gradients(step), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_gradients_are_live_together_with_the_activations_of_the_later_micro_batches():
    at_once, accumulated = (peak_bytes(256, optimizer="sgd", accumulation_steps=steps) for steps in (1, 2))
    # the embeddings' gradient, the largest by far, is made last: without accumulation hardly an activation is left
    assert accumulated - at_once > PARAMETERS_BYTES // 2


@pytest.mark.slow
def test_gradients_that_are_zeroed_late_or_never_freed_are_live_with_the_next_activations():
    before_forward, before_backward, zeros = (
        run_probe(bench(optimizer="sgd", zero_grad=where), 256, with_kinds=False)
        for where in ("before-forward", "before-backward", "zeros")
    )
    assert before_backward.peak_allocated_bytes - before_forward.peak_allocated_bytes > PARAMETERS_BYTES // 2
    assert zeros.peak_allocated_bytes >= before_backward.peak_allocated_bytes
    for probe in (before_backward, zeros):
        kinds = probe.memory_by_kind
        assert kinds.gradients_bytes == PARAMETERS_BYTES
        assert sum(dataclasses.asdict(kinds).values()) == probe.peak_allocated_bytes


@pytest.mark.parametrize("zero_grad", ["before-backward", "zeros"])
def test_every_step_learns_from_its_own_gradients_wherever_they_are_zeroed(zero_grad):
    usual, other = (step_of(bench(sequence_length=8, mode="eval", zero_grad=w)) for w in ("before-forward", zero_grad))
    trained_alike(usual, other)
    for ours, theirs in zip(gradients(usual), gradients(other), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def trained_alike(one: TrainingStep, other: TrainingStep) -> None:
    """Train two models with the same weights on the same two batches."""
    other.built.model.load_state_dict(one.built.model.state_dict())
    for batch in [one.built.make_batch(2) for _ in range(2)]:
        for step in (one, other):
            object.__setattr__(step.built, "make_batch", lambda _, batch=batch: batch)
            step.begin()
            step(2)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_gradients_freed_in_the_backward_pass_train_the_same_weights_and_none_is_left(optimizer):
    kept, freed = (
        step_of(bench(sequence_length=8, mode="eval", optimizer=optimizer, gradients=which))
        for which in ("kept", "freed")
    )
    before = [weight.detach().clone() for weight in kept.built.model.parameters()]
    trained_alike(kept, freed)
    assert gradients(freed) == []
    weights = [list(step.built.model.parameters()) for step in (kept, freed)]
    for ours, theirs in zip(*weights, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)
    assert not any(torch.equal(*pair) for pair in zip(before, weights[1], strict=True) if optimizer == "adamw")
    assert len(state_tensors(freed)) == len(state_tensors(kept))


def test_freed_gradients_take_less_and_the_next_training_of_the_model_keeps_its_own():
    kept, freed = (peak_bytes(4, optimizer="sgd", gradients=which) for which in ("kept", "freed"))
    assert kept - freed > PARAMETERS_BYTES // 10  # the embeddings are nine tenths, and come last
    one = bench(gradients="freed")
    step_of(one)(2)
    step = TrainingStep(dataclasses.replace(one.spec, gradients="kept"), one.built, CPU)
    step(2)
    assert gradients(step)


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"optimizer": "none"}, "gradients", "take an optimizer"),
        ({"precision": "fp16"}, "gradients", "take bf16"),
        ({"clip_grad_norm": True}, "clip_grad_norm", "leave it out, or keep"),
        ({"accumulation_steps": 2}, "accumulation_steps", "must be 1 with freed gradients"),
        ({"zero_grad": "zeros"}, "zero_grad", "must be before-forward with freed gradients"),
    ],
)
def test_what_needs_all_gradients_at_once_excludes_freed_ones_by_name(given, field, reason):
    with pytest.raises(SpecError, match=reason) as refused:
        RunSpec("bert-tiny", gradients="freed", **given)
    assert refused.value.field == field


@pytest.mark.parametrize("device", ["cpu", "mps"])
@pytest.mark.parametrize("name", ["offload_activations", "offload_optimizer"])
def test_offloading_is_refused_by_name_where_the_memory_is_the_host_s(name, device):
    with pytest.raises(SpecError, match=f"{name}: needs a CUDA or XPU device: what {device} computes"):
        RunSpec("bert-tiny", **{name: True}, device=device)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"optimizer": "sgd"}, "optimizer sgd keeps no state"),
        ({"optimizer": "adamw-8bit"}, "not adamw-8bit; paged-adamw-8bit and paged-adamw-32bit move theirs"),
        ({"precision": "fp16"}, "take bf16"),
    ],
)
def test_state_that_cannot_be_kept_on_the_host_is_refused_by_name(given, reason):
    with pytest.raises(SpecError, match=f"offload_optimizer: .*{reason}"):
        RunSpec("bert-tiny", offload_optimizer=True, **given)


@pytest.mark.parametrize("changes", [{}, {"optimizer": "adamw-fused", "clip_grad_norm": True}, {"gradients": "freed"}])
def test_a_training_with_its_state_on_the_host_learns_the_same(changes, monkeypatch):
    moved = []

    def noted(move):
        def move_and_note(*given):
            moved.append(move.__name__)
            move(*given)

        return move_and_note

    for move in (optimizers._fetch_state, optimizers._store_state):
        monkeypatch.setattr(optimizers, move.__name__, noted(move))
    weights = []
    for offload in (False, True):
        torch.manual_seed(0)
        spec = RunSpec("bert-tiny", sequence_length=8, mode="eval", offload_optimizer=offload, **changes)
        step = TrainingStep(spec, build(spec, CPU), CPU)
        torch.manual_seed(1)
        for _ in range(2):
            step.begin()
            step(2)
        weights.append([weight.detach() for weight in step.built.model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))
    assert moved == ["_fetch_state", "_store_state"] * 2 * len(weights[0])


def test_a_timed_step_counts_all_its_micro_batches():
    block = BlockTimer(bench(accumulation_steps=3)).run(2, 0.0001)
    assert (block.outcome, block.micro_batches, block.samples_per_step) == (Outcome.FITS, 3, 6)


def test_the_samples_a_second_of_a_comparison_are_those_of_all_micro_batches():
    def run_block(size: int, _: float) -> TimedBlock:
        return TimedBlock(size, Outcome.FITS, (0.5,), 0.5, micro_batches=4)

    sizes = Candidates((2, 8), current=2, with_reserve=frozenset({2, 8}))
    comparison = SpeedComparison(candidates=sizes, run_block=run_block, emit=lambda _: None)
    found = comparison.run()
    assert round(found.speeds[8].value, 6) == 4 * 8 / 0.5
    probes = {probe.batch_size: probe for probe in comparison.probes(found)}
    assert (round(probes[8].samples_per_second, 6), round(probes[8].step_seconds, 6)) == (64, 0.5)


def test_clipped_gradients_have_the_largest_norm_allowed():
    one = bench(clip_grad_norm=True, optimizer="sgd")
    original = one.built.loss
    object.__setattr__(one.built, "loss", lambda outputs, batch: 1000 * original(outputs, batch))
    step = step_of(one)
    step(2)
    norm = torch.linalg.vector_norm(torch.stack([gradient.norm() for gradient in gradients(step)]))
    assert round(norm.item(), 4) == MAX_GRADIENT_NORM


def test_the_norm_that_is_clipped_is_not_that_of_scaled_gradients():
    one = bench(clip_grad_norm=True, precision="fp16", optimizer="sgd")
    step = step_of(one)
    step.scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    step(2)
    norm = torch.linalg.vector_norm(torch.stack([gradient.float().norm() for gradient in gradients(step)]))
    assert norm.item() <= MAX_GRADIENT_NORM * 1.01


@pytest.mark.parametrize("name", [name for name, each in OPTIMIZERS.items() if each.state_copies])
def test_an_optimizer_s_state_is_at_least_the_copies_that_a_limit_is_checked_with(name):
    step = step_of(bench(sequence_length=8, optimizer=name))
    step(2)
    assert sum(t.nbytes for t in state_tensors(step)) >= OPTIMIZERS[name].state_copies * PARAMETERS_BYTES


@pytest.mark.parametrize("name", ["paged-adamw-8bit", "paged-adamw-32bit"])
def test_paged_state_is_refused_by_name_where_nothing_is_paged(name):
    with pytest.raises(SpecError, match=f"optimizer: {name} needs a CUDA or XPU device: cpu pages nothing; take adamw"):
        RunSpec("bert-tiny", optimizer=name, device="cpu")
    with pytest.raises(SpecError, match="cpu pages nothing"):
        check_environment(RunSpec("bert-tiny", optimizer=name), "cpu")  # as auto is resolved


@pytest.mark.parametrize("name", ["clip_grad_norm", "ema"])
def test_what_is_part_of_an_optimizer_step_is_refused_without_one(name):
    with pytest.raises(SpecError, match=name):
        RunSpec("bert-tiny", optimizer="none", **{name: True})


def test_the_average_is_that_of_torch_s_own_averaged_model():
    one = bench(sequence_length=8, ema=True, optimizer="sgd")
    theirs = swa_utils.AveragedModel(one.built.model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(EMA_DECAY))
    theirs.update_parameters(one.built.model)  # the first update copies
    step = step_of(one)
    for group in step.optimizer.param_groups:
        group["lr"] = 0.1
    for _ in range(2):
        step.clear_gradients()
        step(2)
        theirs.update_parameters(one.built.model)
    ours = [step.averages[parameter] for parameter in one.built.model.parameters()]
    assert any(not torch.equal(a, p) for a, p in zip(ours, one.built.model.parameters(), strict=True))
    for average, expected in zip(ours, theirs.module.parameters(), strict=True):
        torch.testing.assert_close(average, expected)


def test_the_average_is_one_more_copy_of_the_weights_from_the_first_step_on():
    plain, averaged = (run_probe(bench(optimizer="sgd", ema=ema), 4, with_kinds=False) for ema in (False, True))
    assert averaged.peak_allocated_bytes - plain.peak_allocated_bytes == PARAMETERS_BYTES
    assert averaged.memory_by_kind.optimizer_state_bytes == PARAMETERS_BYTES


def test_frozen_blocks_have_neither_gradients_nor_state_and_the_embeddings_are_frozen_with_them():
    step = step_of(bench(sequence_length=8, frozen_blocks=1))
    step(2)
    learned = {name for name, parameter in step.built.model.named_parameters() if parameter.grad is not None}
    with_state = {name for name, parameter in step.built.model.named_parameters() if step.state(parameter)}
    assert learned == with_state
    assert not any(name.startswith(("bert.embeddings", "bert.encoder.layer.0.")) for name in learned)
    assert any(name.startswith("bert.encoder.layer.1.") for name in learned)


def test_the_more_blocks_are_frozen_the_less_memory_is_taken():
    peaks = [peak_bytes(64, frozen_blocks=count) for count in (None, 1, 2)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] - peaks[2] > 2 * PARAMETERS_BYTES


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"model": "t5-small", "frozen_blocks": 1}, "t5-small is not one stack"),
        ({"model": "bert", "frozen_blocks": 13}, "bert has 12; that many train its head alone"),
        ({"model": "bert", "frozen_blocks": 2, "lora_rank": 8}, "LoRA rank"),
    ],
)
def test_blocks_that_cannot_be_frozen_are_refused_by_name(given, reason):
    with pytest.raises(SpecError, match=reason):
        RunSpec(**given)


def test_channels_last_holds_for_images_weights_gradients_and_activations():
    step = step_of(bench("resnet18", channels_last=True, optimizer="sgd"))
    layouts = []
    hook = step.built.model.layer1.register_forward_hook(lambda *call: layouts.append(call[-1]))
    step(2)
    hook.remove()
    tensors = [*layouts, *step.built.model.parameters(), *gradients(step), *step.built.make_batch(2).values()]
    images = [tensor for tensor in tensors if tensor.dim() == 4 and min(tensor.shape[1:]) > 1]
    assert len(images) > 20
    assert all(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in images)


def test_channels_last_is_for_convolutional_networks():
    with pytest.raises(SpecError, match="vit_b_16 is no convolutional network"):
        RunSpec("vit_b_16", channels_last=True)
