"""Fake cuda tensors without a card: tried in a process that may crash, undone afterwards, and why not where not."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

from engine.estimate.gpus import find
from engine.estimate.tracing import fake_cuda, trace
from engine.estimate.tracing.hidden_devices import HIDDEN, devices_hidden

ROOT = Path(__file__).resolve().parents[3]
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tried on Linux only")


@pytest.fixture
def untried(monkeypatch):
    # what this process found at its start stays known: after a backward pass it would be found no more
    monkeypatch.setattr(fake_cuda, "_obstacle_found_by_trial", cache(fake_cuda._obstacle_found_by_trial.__wrapped__))


def in_a_new_process(code):
    code = f"import torch; from engine.estimate.tracing import fake_cuda; {code}"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)


@pytest.mark.slow
@needs_linux
def test_it_works_with_the_torch_that_is_required_here_and_the_process_ends_well():
    assert in_a_new_process("assert fake_cuda.obstacle() is None; fake_cuda.enabled().__enter__()").returncode == 0


@pytest.mark.slow
@needs_linux
def test_it_says_no_where_autograd_has_started_its_threads_before():
    backward = "torch.ones(2, requires_grad=True).sum().backward()"
    assert in_a_new_process(f"{backward}; assert 'autograd' in fake_cuda.obstacle()").returncode == 0


@needs_linux
def test_a_step_runs_the_operators_of_cuda_only_while_it_is_enabled():
    assert fake_cuda.obstacle() is None
    with fake_cuda.enabled():
        assert fake_cuda.trains_as_on_cuda()
    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    assert weight.grad.device.type == "cpu"


@pytest.mark.slow
@needs_linux
def test_a_real_backward_pass_between_two_traces_is_in_nobody_s_way():
    backward = "torch.ones(2, requires_grad=True).sum().backward()"
    trial = "assert fake_cuda._try_it()"
    assert in_a_new_process(f"assert fake_cuda.obstacle() is None; {backward}; {trial}").returncode == 0


def test_a_process_that_uses_cuda_is_told_to_estimate_in_another(monkeypatch):
    monkeypatch.setattr(torch.cuda, "_initialized", True)
    conditions = trace.conditions_for(find("a10"), "fp32")
    assert conditions.method == "approximate_fake_cpu"
    assert "CUDA is in use in this process" in conditions.approximate_because


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by SIGKILL"),
        (lambda: False, "do not run the operators of CUDA"),
        (lambda: 1 / 0, "ZeroDivisionError"),
    ],
    ids=["crash", "wrong", "raise"],
)
def test_a_torch_on_which_the_trial_fails_is_traced_on_the_cpu_and_the_reason_kept(
    untried, monkeypatch, ending, reason
):
    monkeypatch.setattr(fake_cuda, "trains_as_on_cuda", ending)
    conditions = trace.conditions_for(find("a10"), "fp32")
    assert (conditions.method, conditions.device_type) == ("approximate_fake_cpu", "cpu")
    assert reason in conditions.approximate_because


def test_a_torch_whose_table_of_guards_has_another_name_is_not_touched(untried, monkeypatch):
    monkeypatch.setattr(fake_cuda, "_GUARD_TABLE", "no_such_symbol")
    assert "no_such_symbol" in fake_cuda.obstacle()


def test_the_cpu_is_never_approximate():
    conditions = trace.conditions_for(None, "fp32")
    assert (conditions.method, conditions.approximate_because) == ("fake_cpu", None)


def test_devices_are_hidden_inside_and_as_they_were_afterwards(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    with devices_hidden():
        assert {name: os.environ[name] for name in HIDDEN} == HIDDEN
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    assert "HIP_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize("gpu", ["a10", None], ids=["for a card", "for the CPU"])
def test_no_step_is_traced_while_a_card_can_be_seen(gpu):
    seen = []

    def make(device):
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        raise ValueError("seen enough")

    card = None if gpu is None else find(gpu)
    with pytest.raises(trace.EstimateImpossible, match="seen enough"):
        trace.record(make, 2, trace.conditions_for(card, "fp32"))
    assert seen == [""]
