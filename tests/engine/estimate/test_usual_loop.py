"""The step that is measured and traced frees its memory when the training loop that people write does."""

import importlib

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from engine.estimate.tracing import trace
from engine.measurement.device import Cpu
from engine.measurement.live_blocks import TracedStep, explain
from engine.measurement.probe import Bench, profiled_step
from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.traced_step import read_trace
from engine.measurement.workloads import Built, transformer
from engine.settings.spec import MEMORY_STEPS, RunSpec

CPU = torch.device("cpu")
BATCH_SIZE, TOKENS, VOCABULARY = 6, 24, 3_000
LOGITS_BYTES = 4 * BATCH_SIZE * TOKENS * VOCABULARY
SPEC = RunSpec("bert-tiny", optimizer="sgd")


def language_model(device: torch.device) -> Built:
    """A language model so small that its logits are most of the memory; it returns a key-value cache, too."""
    import_torchvision()
    transformers = importlib.import_module("transformers")
    config = transformers.GPT2Config(n_layer=1, n_embd=16, n_head=2, vocab_size=VOCABULARY, n_positions=TOKENS)
    model = transformers.GPT2LMHeadModel(config).to(device)

    def make_batch(size: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, VOCABULARY, (size, TOKENS), device=device)
        return {"input_ids": tokens, "labels": tokens}

    return transformer(model, make_batch)


def usual_loop_peak_bytes() -> int:
    """The loop as people write it, all of it under the profiler, so that nothing must be known of what it keeps."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as whole:
        built = language_model(CPU)
        model = built.model
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
        for _ in range(MEMORY_STEPS):
            optimizer.zero_grad()
            batch = built.make_batch(BATCH_SIZE)
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            del batch  # a step's batch is gone when the next one is made, as where a loader puts it on the device
    events, _ = read_trace(whole, "cpu")
    return explain(TracedStep(events, 0), None).total_bytes


def measured_peak_bytes(built: Built) -> int:
    bench, step = Bench(SPEC, Cpu(CPU), built), TrainingStep(SPEC, built, CPU)
    return max(profiled_step(bench, step, BATCH_SIZE).total_bytes for _ in range(MEMORY_STEPS))


def traced_peak_bytes() -> int:
    def make(device: torch.device) -> TrainingStep:
        return TrainingStep(SPEC, language_model(device), device)

    return trace.record(make, BATCH_SIZE, trace.Conditions("fake_cpu", None)).peak_live_bytes()


@pytest.mark.slow
def test_a_language_model_s_outputs_are_kept_to_the_byte_as_in_the_loop_that_people_write():
    usual = usual_loop_peak_bytes()
    assert measured_peak_bytes(language_model(CPU)) == pytest.approx(usual, abs=100)
    assert traced_peak_bytes() == pytest.approx(usual, abs=100)


def test_a_loop_that_drops_its_outputs_takes_about_one_logits_tensor_less():
    dropping = language_model(CPU)
    object.__setattr__(dropping, "forward", lambda batch: dropping.model(**batch).loss)
    object.__setattr__(dropping, "loss", lambda loss, _: loss)
    spared_bytes = measured_peak_bytes(language_model(CPU)) - measured_peak_bytes(dropping)
    assert spared_bytes == pytest.approx(LOGITS_BYTES, rel=0.1)


def test_the_outputs_of_a_step_are_replaced_when_the_next_forward_pass_has_returned():
    built = language_model(CPU)
    step = TrainingStep(SPEC, built, CPU)
    step(2)
    first, seen = step.outputs, []
    forward = built.forward
    object.__setattr__(built, "forward", lambda batch: (seen.append(step.outputs), forward(batch))[1])
    object.__setattr__(built, "loss", lambda outputs, _: (seen.append(step.outputs), outputs.loss)[1])
    step(2)
    assert seen[0] is first
    assert seen[1] is step.outputs is not first
