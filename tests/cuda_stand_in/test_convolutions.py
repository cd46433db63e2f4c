"""Residual networks: cuDNN's plans want workspaces, and PyTorch takes a smaller plan where one does not fit."""

import pytest

from engine.results.result import Outcome
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import WarmEngine

SMALL = {"image_size": 64, "memory_limit_bytes": GIB, "optimizer": "momentum"}
CARD = {"memory": 4 * GIB}


@pytest.mark.parametrize("model", ["resnet18", "resnet"])
def test_a_residual_network_trains(warm: WarmEngine, model: str) -> None:
    probe = warm.probe(CARD, 16, model=model, **SMALL)
    assert probe.fits
    assert probe.peak_reserved_bytes is not None
    assert probe.peak_reserved_bytes <= GIB


def test_a_workspace_counts_as_memory_of_the_training(warm: WarmEngine) -> None:
    without = warm.probe({**CARD, "workspace": 0}, 64, model="resnet18", **SMALL)
    with_one = warm.probe({**CARD, "workspace": 400}, 64, model="resnet18", **SMALL)
    assert with_one.fits
    assert (with_one.peak_allocated_bytes or 0) > (without.peak_allocated_bytes or 0) + 16 * MIB


def test_a_workspace_that_does_not_fit_costs_a_plan_and_not_the_size(warm: WarmEngine) -> None:
    probe = warm.probe({**CARD, "workspace": 100_000}, 64, model="resnet18", **SMALL)
    assert probe.fits


def test_a_cudnn_that_cannot_start_is_no_out_of_memory(warm: WarmEngine) -> None:
    roomy = {**SMALL, "memory_limit_bytes": 3 * GIB}
    probe = warm.probe({**CARD, "fail": "cudnnCreate:1001"}, 16, model="resnet18", **roomy)
    assert probe.outcome is Outcome.ERROR
    assert "CUDNN_STATUS_NOT_INITIALIZED" in (probe.error_message or "")
