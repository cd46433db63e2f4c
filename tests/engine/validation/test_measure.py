"""A validation that really runs, on the smallest model."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from engine.measurement.timing import one_step
from engine.validation import measure
from engine.validation.measure import difference_of
from engine.validation.spec import ValidationSpec
from tests.engine.cli.test_cli import ROOT


def test_the_difference_of_gradients_is_relative_to_the_length_of_the_reference():
    reference = [torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])]
    assert difference_of(reference, reference) == 0
    assert difference_of([torch.tensor([3.0, 0.5]), torch.tensor([[4.0]])], reference) == pytest.approx(0.1)
    assert difference_of([torch.tensor([float("nan"), 0.0]), torch.tensor([[4.0]])], reference) is None
    assert difference_of([torch.zeros(1)], [torch.zeros(1)]) == 0


def test_a_result_that_no_file_takes_is_said_all_the_same(monkeypatch):
    monkeypatch.setattr(measure._Validation, "run", lambda _: SimpleNamespace(to_dict=lambda: {"checks": []}))
    events = []

    def keep(_):
        raise OSError("no space is left")

    measure.validate(ValidationSpec("bert-tiny"), events.append, keep=keep)
    assert [each["event"] for each in events] == ["log", "phase", "result"]
    assert "no space is left" in events[0]["message"]


@pytest.mark.slow
def test_a_validation_of_the_backward_pass_ends_with_its_result_in_the_file_and_in_an_event(tmp_path):
    spec = {"model": "bert-tiny", "device": "cpu", "precision": "bf16", "sequence_length": 16}
    path = tmp_path / "result.json"
    command = [sys.executable, "-m", "engine", "validate", "--spec", json.dumps(spec), "--events"]
    done = subprocess.run(
        [*command, "--result-file", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert "USDT" not in done.stderr  # what the portal would show as lines of the run's log
    assert json.loads(path.read_text()) == {"exit_status": 0, "result": events[-1]["result"]}
    assert [event["phase"] for event in events if event["event"] == "phase"] == [
        *("preparing", "memory", "gradients", "finished"),
    ]
    ratio, gradients = events[-1]["result"]["checks"]
    assert gradients["text"] == "the gradients of bf16 agree with fp32 within 2 %: passed"
    assert 0 < gradients["measured"] < 0.02
    assert ratio["measured"] > 1.5


@pytest.mark.slow
def test_compiled_and_eager_gradients_are_those_of_the_same_weights(monkeypatch):
    compile_in_place = torch.nn.Module.compile
    models = []

    def compile_without_kernels(model, **settings):
        models.append(model)
        compile_in_place(model, backend="eager", **settings)

    monkeypatch.setattr(torch.nn.Module, "compile", compile_without_kernels)
    monkeypatch.setattr(measure, "timed_steps", lambda device, step, size: [one_step(device, step, size)] * 3)
    training = {"sequence_length": 16, "torch_compile": True}  # which the eager side must leave out
    spec = ValidationSpec("bert-tiny", device="cpu", check="compile", batch_size=2, **training)
    result = measure.validate(spec, lambda _: None)
    gradients = next(check for check in result.checks if check.name == "gradients")
    assert gradients.claim == "the gradients of compiled fp32 agree with those of eager mode within 0.1 %"
    assert gradients.measured < 1e-5
    assert len(models) == 1  # the steps of eager mode ran before, of the model that was not compiled yet
