"""Fake cuda tensors without CUDA: tried in a process that may crash, and undone afterwards."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.estimate import fake_cuda, trace
from engine.estimate.gpus import find

ROOT = Path(__file__).resolve().parents[3]
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tried on Linux only")


@pytest.fixture
def untried(monkeypatch):
    monkeypatch.setattr(fake_cuda, "_is_available", None)


def in_a_new_process(code):
    code = f"import torch; from engine.estimate import fake_cuda; {code}"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)


@needs_linux
def test_it_works_with_the_torch_that_is_required_here_and_the_process_ends_well():
    assert in_a_new_process("assert fake_cuda.is_available(); fake_cuda.enabled().__enter__()").returncode == 0


@needs_linux
def test_it_says_no_where_autograd_has_started_its_threads_before():
    backward = "torch.ones(2, requires_grad=True).sum().backward()"
    assert in_a_new_process(f"{backward}; assert not fake_cuda.is_available()").returncode == 0


@needs_linux
def test_a_step_runs_the_operators_of_cuda_only_while_it_is_enabled():
    with fake_cuda.enabled():
        assert fake_cuda.trains_as_on_cuda()
    assert not torch.cuda.is_available()
    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    assert weight.grad.device.type == "cpu"


@pytest.mark.parametrize(
    "ending",
    [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: False, lambda: 1 / 0],
    ids=["crash", "wrong", "raise"],
)
def test_a_torch_on_which_the_trial_fails_is_traced_on_the_cpu_and_labelled(untried, monkeypatch, capfd, ending):
    monkeypatch.setattr(fake_cuda, "trains_as_on_cuda", ending)
    conditions = trace.conditions_for(find("a10"), "fp32")
    assert (conditions.method, conditions.device_type) == ("approximate_fake_cpu", "cpu")


def test_a_torch_whose_table_of_guards_has_another_name_is_not_touched(untried, monkeypatch, capfd):
    monkeypatch.setattr(fake_cuda, "_GUARD_TABLE", "no_such_symbol")
    assert not fake_cuda.is_available()


def test_the_cpu_is_never_approximate():
    assert trace.conditions_for(None, "fp32").method == "fake_cpu"
