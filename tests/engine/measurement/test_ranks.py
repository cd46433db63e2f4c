"""A strategy of several ranks is put around every kind of step, and the step learns."""

import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist

from engine.measurement.ranks import step_of_this_rank
from engine.measurement.workloads import build
from engine.ranks.emulated_group import emulated_ranks
from engine.spec import RunSpec

CPU = torch.device("cpu")
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
