"""Small trainings that are traced, and the peak of their real steps on the CPU."""

import json

import pytest
import torch

from engine.estimate.tracing import fake_cuda, trace
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, profiled_step
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import build
from engine.settings.spec import MEMORY_STEPS, RunSpec

CPU = torch.device("cpu")
ON_CPU = trace.Conditions("fake_cpu", None)
ON_A_CARD = trace.Conditions("fake_cuda", "sm80")
needs_fake_cuda = pytest.mark.skipif(fake_cuda.obstacle() is not None, reason="this torch carries no fake cuda tensors")


def tiny(**changes):
    return RunSpec("bert-tiny", **{"sequence_length": 32, **changes})


def decoder(**changes):
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 2, "vocab_size": 100, "max_position_embeddings": 64}
    return RunSpec("config", config=json.dumps(config), task="text-generation", sequence_length=64, **changes)


def real_peak(spec, batch_size):
    bench = Bench(spec, Cpu(CPU), build(spec, CPU))
    step = TrainingStep(spec, bench.built, CPU)
    return max(profiled_step(bench, step, batch_size).total_bytes for _ in range(MEMORY_STEPS))
