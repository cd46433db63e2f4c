"""The checks of a validation: their thresholds, their words, the verdict, and one that really runs."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from engine.errors import SpecError
from engine.facts.result import DeviceFacts
from engine.measurement.timing import one_step
from engine.questions.documents.validated import Validated
from engine.questions.validation import measure, verdict
from engine.questions.validation.measure import difference_of
from engine.questions.validation.spec import COMPILE, ValidationSpec
from engine.questions.validation.verdict import Check, StepFigures, ValidationResult, Verdict
from engine.text.units import GIB
from tests.engine.cli.test_cli import ROOT

PASSED, WARNING, FAILED, OPEN = Verdict.PASSED, Verdict.WARNING, Verdict.FAILED, Verdict.NOT_CHECKED


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        *((1.0, FAILED), (1.49, FAILED), (1.5, WARNING), (1.99, WARNING)),
        *((2.0, PASSED), (3.0, PASSED), (3.01, WARNING)),
    ],
)
def test_the_memory_of_the_backward_pass_passes_between_two_and_three(ratio, expected):
    check = verdict.check_of_memory_ratio(1_000_000, int(ratio * 1_000_000))
    assert check.verdict is expected
    assert check.finding.endswith("batch sizes found with it hold") == (expected is WARNING)


def test_gradients_within_the_tolerance_pass_in_words():
    check = verdict.check_of_gradients("bf16", 0.0068, 0.02)
    assert check.text == "the gradients of bf16 agree with fp32 within 2 %: passed"
    assert check.finding == "they differ by 0.68 %"


@pytest.mark.parametrize("difference", [0.0201, float("nan"), float("inf"), None])
def test_gradients_beyond_the_tolerance_or_not_finite_fail(difference):
    assert verdict.check_of_gradients("bf16", difference, 0.02).verdict is FAILED


def test_a_compiled_step_is_faster_only_where_the_middle_halves_do_not_overlap():
    eager = StepFigures(GIB, (1.0, 1.1, 1.2, 1.1))
    faster = StepFigures(GIB, (0.50, 0.55, 0.60, 0.55), compile_seconds=11.0)
    passed = verdict.check_of_speed(eager, faster)
    assert passed.verdict is PASSED
    assert "compiling pays after 20 steps" in passed.finding
    unclear = verdict.check_of_speed(eager, StepFigures(GIB, (0.9, 1.0, 1.3, 1.1), compile_seconds=11.0))
    assert unclear.verdict is WARNING
    assert "overlap" in unclear.finding
    assert verdict.check_of_speed(eager, StepFigures(GIB, (0.5,))).verdict is OPEN


@pytest.mark.parametrize(("held", "expected"), [(90, PASSED), (105, PASSED), (106, WARNING), (None, OPEN)])
def test_a_compiled_step_may_hold_a_twentieth_more_memory(held, expected):
    assert verdict.check_of_compiled_memory(StepFigures(100), StepFigures(held)).verdict is expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([PASSED, PASSED], PASSED),
        ([PASSED, WARNING], WARNING),
        ([PASSED, OPEN], WARNING),
        ([FAILED, PASSED, WARNING], FAILED),
        ([], WARNING),
    ],
)
def test_the_whole_passes_only_where_every_check_does(verdicts, expected):
    assert verdict.overall(verdicts) is expected


def test_a_result_is_json_with_its_verdict_in_words_and_its_checks_can_be_read_back():
    checks = (verdict.check_of_gradients("bf16", 0.0068, 0.02), verdict.check_of_memory_ratio(100, 180))
    spec = ValidationSpec("bert", precision="bf16")
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=GIB)
    made = ValidationResult(spec, device, checks, {"forward": StepFigures(100, (1.0, 2.0))}, {"torch": "2"}, 3.0)
    stored = json.loads(json.dumps(made.to_dict()))
    assert stored["verdict"] == "warning"
    assert stored["verdict_text"] == ("The validation of the backward pass passed with warnings: 1 of 2 checks passed.")
    assert stored["checks"][0]["text"].endswith("within 2 %: passed")
    assert Validated.from_dict(stored).checks == checks
    assert ValidationSpec.from_dict(stored["spec"]) == spec


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "model"),
        ({"model": "bert", "check": "forward"}, "check"),
        ({"model": "bert", "check": 1}, "check"),
        ({"model": "bert", "batch_size": 0}, "batch_size"),
        ({"model": "bert", "batch_size": True}, "batch_size"),
        ({"model": "bert", "gradient_tolerance": 1.5}, "gradient_tolerance"),
        ({"model": "bert", "gradient_tolerance": float("nan")}, "gradient_tolerance"),
        ({"model": "bert", "gradient_tolerance": "2 %"}, "gradient_tolerance"),
        ({"model": "bert", "max_batch_size": 8}, "max_batch_size"),
        ({"model": "bert", "image_size": 224}, "image_size"),
        ({"model": "bert", "expandable_segments": True}, "expandable_segments"),
        ({"model": "retinanet-resnet50", "gradient_checkpointing": True}, "gradient_checkpointing"),
    ],
)
def test_a_wrong_field_is_named(given, field):
    with pytest.raises(SpecError) as refusal:
        ValidationSpec.from_dict(given)
    assert refusal.value.field == field


def test_the_tolerance_follows_the_precision_unless_one_is_given():
    assert ValidationSpec("bert").tolerance == 0.001
    assert ValidationSpec("bert", precision="bf16").tolerance == 0.02
    assert ValidationSpec("bert", precision="bf16", gradient_tolerance=0).tolerance == 0
    assert ValidationSpec("bert", check=COMPILE, batch_size=4).run_spec().current_batch_size == 4


def test_a_check_that_was_not_made_says_why():
    check: Check = verdict.not_checked("gradients", "the gradients agree", "no fp64 here")
    assert check.text == "the gradients agree: not checked"


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
