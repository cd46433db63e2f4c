"""What filled the memory of a real training step on the CPU: where truth is known, and to the byte."""

import pytest
import torch

from engine.estimate.explain import what_fills
from engine.estimate.replay import CardConstants, PlainMemory
from engine.estimate.tracing.trace import memory_model
from engine.facts.memory_breakdown import by_kind
from engine.measurement.attribution import attribute
from engine.measurement.probe import Bench, run_probe
from engine.measurement.step import TrainingStep
from engine.measurement.traced_step import read_trace, recorded
from engine.measurement.workloads import build
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB
from tests.engine.measurement.test_probe import cpu_with_limit

PARAMETERS_BYTES = 4 * 4_386_178


def bench(limit_bytes: int, model: str = "bert-tiny", **settings) -> Bench:
    sized = {"sequence_length": 32} if model != "resnet18" else {"image_size": 33}
    spec = RunSpec(model, device="cpu", **{**sized, **settings})
    return Bench(spec, cpu_with_limit(limit_bytes), build(spec, torch.device("cpu")))


def filled(limit_bytes: int, batch_size: int, **settings):
    found = attribute(bench(limit_bytes, **settings), batch_size, steps=3)
    assert sum(entry.size_bytes for entry in found.entries) == found.total_bytes
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"optimizer": "sgd"},
        {"precision": "bf16"},
        {"gradient_checkpointing": True},
        {"ema": True, "optimizer": "sgd", "accumulation_steps": 2},
        {"zero_grad": "before-backward"},
        {"zero_grad": "zeros"},
        {"gradients": "freed"},
        {"model": "resnet18"},
    ],
)
def test_the_peak_is_the_probe_s_to_the_byte(given):
    probe = run_probe(bench(GIB, **given), 16)
    found = filled(GIB, 16, **given)
    assert (found.moment, found.total_bytes) == ("peak", probe.peak_allocated_bytes)
    kinds = by_kind(found)
    assert kinds.get("optimizer_state", 0) == probe.memory_by_kind.optimizer_state_bytes
    assert kinds.get("gradients", 0) == probe.memory_by_kind.gradients_bytes
    assert "unattributed" not in kinds


def test_a_refusal_agrees_with_the_budget_s_count_at_the_failing_allocation():
    limit = 4 * PARAMETERS_BYTES + 20 * MIB
    found = filled(limit, 64)
    assert (found.moment, found.step) == ("refusal", 1)
    one = bench(limit)
    step = TrainingStep(one.spec, one.built, torch.device("cpu"))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as trace:
        step(64, recorded)
    live, now = {}, sum(t.nbytes for t in (*one.built.model.parameters(), *one.built.model.buffers()))
    for event in read_trace(trace, "cpu")[0]:
        change = event.size_bytes if event.size_bytes > 0 else -live.pop(event.address, 0)
        if now + change > limit:
            break
        now += change
        live |= {event.address: event.size_bytes} if change > 0 else {}
    assert (found.total_bytes, found.request.size_bytes) == (now, event.size_bytes)


def test_weights_above_the_limit_are_told_by_module():
    found = filled(PARAMETERS_BYTES // 2, 1)
    assert by_kind(found).keys() == {"parameters"}
    assert found.entries[0].module == "bert.embeddings.word_embeddings"


def test_adam_s_state_is_refused_at_the_first_optimizer_step():
    found = filled(2 * PARAMETERS_BYTES + 4 * MIB, 1)
    assert (found.step, found.request.phase, found.request.kind) == (1, "optimizer_step", "optimizer_state")
    assert found.request.module == "bert.embeddings.word_embeddings"
    kinds = by_kind(found)
    assert PARAMETERS_BYTES <= kinds["gradients"] <= kinds["parameters"]


def test_activations_belong_to_the_module_that_made_them():
    found = filled(PARAMETERS_BYTES + 24 * MIB, 64)
    assert found.request.phase == "forward"
    assert found.request.module.startswith("bert.encoder.layer.")
    activations = [entry for entry in found.entries if entry.kind == "activations"]
    assert {entry.phase for entry in activations} == {"forward"}
    assert all(entry.module.startswith("bert.") for entry in activations)


def test_the_backward_pass_is_attributed_to_the_modules_whose_nodes_it_runs():
    found = filled(GIB, 256, optimizer="none")
    assert found.request.phase == "backward"
    temporaries = [entry for entry in found.entries if (entry.kind, entry.phase) == ("temporaries", "backward")]
    of_layers = sum(entry.size_bytes for entry in temporaries if (entry.module or "").startswith("bert.encoder.layer."))
    assert of_layers >= 0.99 * sum(entry.size_bytes for entry in temporaries) > 0


def test_nothing_of_the_attribution_is_left_on_the_model():
    one = bench(GIB)
    before = run_probe(one, 4).peak_allocated_bytes
    attribute(one, 4, steps=1)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in one.built.model.modules())
    assert run_probe(one, 4).peak_allocated_bytes == before


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"precision": "bf16"}, {"gradient_checkpointing": True}])
def test_an_estimate_attributes_as_the_measurement_does(given):
    limit = 3 * PARAMETERS_BYTES
    measured = filled(limit, 64, **given)
    recording = memory_model(bench(limit, **given).spec, None).at(64)
    estimated = what_fills(recording, PlainMemory(), CardConstants(), limit)
    assert (measured.total_bytes, measured.request.module) == (estimated.total_bytes, estimated.request.module)
    ours, theirs = by_kind(measured), by_kind(estimated)
    assert ours.keys() == theirs.keys()
    for kind in ours:
        assert abs(ours[kind] - theirs[kind]) <= 0.05 * measured.total_bytes, kind
