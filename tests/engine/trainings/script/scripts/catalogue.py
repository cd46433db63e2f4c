"""The training of a model of our own catalogue as a script, to compare with what the engine measures of it."""

import sys

import torch

from engine.measurement.step import TrainingStep
from engine.measurement.workloads import build
from engine.settings.spec import RunSpec

spec = RunSpec("bert-tiny", device="cpu", sequence_length=32)
step = TrainingStep(spec, build(spec, torch.device("cpu")), torch.device("cpu"))
for _ in range(1_000):
    step.clear_gradients()
    step(int(sys.argv[1]))
