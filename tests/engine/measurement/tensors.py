"""The tensors that a training step leaves."""

from torch import Tensor

from engine.measurement.module_scopes import gradients_of, state_of
from engine.measurement.step import TrainingStep


def gradients(step: TrainingStep) -> list[Tensor]:
    return [tensor for _, tensor in gradients_of(step.built.model)]


def state_tensors(step: TrainingStep) -> list[Tensor]:
    return [tensor for _, tensor in state_of(step.built.model, step.state)]
