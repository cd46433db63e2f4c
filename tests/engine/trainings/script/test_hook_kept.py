"""What a recorded training keeps: weights, gradients and states, and tensors that each step leaves behind."""

import sys

import pytest
import torch

from engine.trainings.script.start.environment import HOOK

sys.path.append(str(HOOK))
kept = pytest.importorskip("memorymark_kept")
STEPS = 40


def test_tensors_that_each_step_leaves_behind_are_told_with_their_shape() -> None:
    before = kept.alike(torch, "cpu")
    left = [torch.ones(7, 11) for _ in range(STEPS)]
    assert kept.piled_up(before, kept.alike(torch, "cpu"), STEPS) == {
        **{"shape": (7, 11), "count": STEPS, "bytes": STEPS * 77 * 4, "graphs": 0},
    }
    assert kept.piled_up(before, kept.alike(torch, "cpu"), 3 * STEPS) is None
    assert kept.alike(torch, "cuda") == {}  # outputs that are moved to the host fill no card
    del left


def test_losses_that_hold_the_graph_of_their_step_are_counted() -> None:
    weight = torch.ones(7, 11, requires_grad=True)
    before = kept.alike(torch, "cpu")
    left = [(weight * torch.ones(7, 11)).sum() for _ in range(STEPS)]
    found = kept.piled_up(before, kept.alike(torch, "cpu"), STEPS)
    assert (found["count"], found["graphs"]) == (len(left), STEPS)


def test_tensors_of_many_shapes_are_told_together() -> None:
    before = kept.alike(torch, "cpu")
    left = [torch.ones(13, 100 + number) for number in range(STEPS)]
    found = kept.piled_up(before, kept.alike(torch, "cpu"), STEPS)
    assert (found["shape"], found["count"]) == (None, len(left))


def test_weights_gradients_and_states_are_told_apart() -> None:
    before = kept.shares(torch, "cpu")
    layer = torch.nn.Linear(100, 10, bias=False)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(2, 100)).sum().backward()
    optimizer.step()
    now = kept.shares(torch, "cpu")
    added = {name: now[name] - before[name] for name in now}
    step = 4  # Adam counts its steps in a tensor
    assert added == {"weights_bytes": 4_000, "gradients_bytes": 4_000, "states_bytes": 8_000 + step}
    assert kept.shares(torch, "cuda")["weights_bytes"] == 0
