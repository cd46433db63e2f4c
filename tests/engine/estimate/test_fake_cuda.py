"""Fake tensors: those of a card that is not there, and that they remember what operators return."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from engine.estimate.gpus import find
from engine.estimate.tracing import fake_cuda, fake_tensors, trace
from engine.estimate.tracing.fake_tensors import FakeTensors, _facts
from engine.estimate.tracing.hidden_devices import HIDDEN, devices_hidden
from engine.settings.spec import RunSpec

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


ON_CPU = trace.Conditions("fake_cpu", None)

OPERATORS = {
    "new": lambda x: x + 1,
    "new of another type": lambda x: x.to(torch.bfloat16),
    "new with gaps in memory": lambda x: torch.empty_strided((2, 2), (8, 1)),
    "view": lambda x: x.t(),
    "view from the middle": lambda x: x[1:, 2:],
    "view that says it is none": lambda x: torch.ops.aten._unsafe_view(x, [12]),
    "in place": lambda x: x.mul_(2),
    "in place with its layout": lambda x: x.unsqueeze_(0),
    "several": lambda x: torch.max(x, 0),
    "several views": lambda x: x.unbind(),
    "view of one of two": lambda x: torch.broadcast_tensors(x, x)[1],
    "one twice": lambda x: torch.add(x, x),
    "a list": lambda x: torch.cat([x, x.t().reshape(3, 4)]),
    "without a result": lambda x: torch._foreach_add_([x], 1),
    "without a result, by numbers": lambda x: torch._foreach_addcdiv_([x], [x + 1], [x + 2], [0.5]),
    "a list of new ones": lambda x: torch._foreach_sqrt([x, x.t()]),
    "a list that holds one of its own": lambda x: torch.ops.aten.split(x, 2),
    "nothing, with data": lambda x: torch.tensor([], dtype=torch.float16),
    "layers": lambda x: functional.layer_norm(functional.gelu(x), [4]),
}


def outcome(mode, operator):
    """Return the facts of every result of three calls, and whether it lies in the memory of what it was made from."""
    found = []
    with mode:
        for _ in range(3):
            x = torch.empty(3, 4)
            results = operator(x)
            results = results if isinstance(results, tuple | list) else (results,)
            memory = x.untyped_storage()._cdata
            found += [(_facts(r), r.untyped_storage()._cdata == memory) for r in (*results, x) if r is not None]
    return found


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_what_is_remembered_is_what_torch_returns(operator):
    assert outcome(FakeTensors(), operator) == outcome(FakeTensorMode(), operator)


def test_a_result_of_the_cache_has_every_attribute_that_the_constructor_sets():
    with FakeTensors():
        first, second = (torch.empty(3) + 1 for _ in range(2))
        assert second.__dict__ == first.__dict__
        assert second.device == first.device


def test_a_trace_does_not_depend_on_the_traces_before_it():
    """What operators return is remembered for the whole process, and by traces of other sizes and models too."""
    spec = RunSpec(model="bert-tiny", sequence_length=32)
    alone = trace.record(trace.step_maker(spec), 3, ON_CPU)
    trace.record(trace.step_maker(RunSpec(model="bert-tiny", sequence_length=64, precision="bf16")), 3, ON_CPU)
    assert trace.record(trace.step_maker(spec), 3, ON_CPU) == alone


def test_what_is_remembered_is_forgotten_before_it_grows_large(monkeypatch):
    monkeypatch.setattr(fake_tensors, "_MOST_NOTES", 0)
    with FakeTensors():
        torch.empty(3) + 1
    assert fake_tensors._SHARED_NOTES
    assert outcome(FakeTensors(), OPERATORS["new"]) == outcome(FakeTensorMode(), OPERATORS["new"])
    assert FakeTensors()._notes == {}


def test_numbers_that_are_equal_but_of_other_types_have_results_of_their_own():
    with FakeTensors():
        x = torch.empty(2, dtype=torch.int64)
        assert [(x * factor).dtype for factor in (1, 1.0, True)] == [torch.int64, torch.float32, torch.int64]


def test_tensors_that_hold_a_value_are_computed_each_time():
    with FakeTensors():
        assert [(torch.tensor(number) + 1).item() for number in (1, 2, 3)] == [2, 3, 4]


def test_results_of_one_memory_have_it_in_common_each_time():
    with FakeTensors():
        for _ in range(3):
            one, other = torch.empty(4, 4).split(2)
            assert one.untyped_storage()._cdata == other.untyped_storage()._cdata


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"gradient_checkpointing": True}, {"lora_rank": 4, "precision": "bf16"}], ids=str)
def test_a_step_is_recorded_as_it_is_by_torch_s_own_fake_tensors(changes, monkeypatch):
    make_step = trace.step_maker(RunSpec("bert-tiny", sequence_length=16, **changes))
    remembered = trace.record(make_step, 3, ON_CPU)
    monkeypatch.setattr(trace, "FakeTensors", lambda: FakeTensorMode(allow_non_fake_inputs=True))
    assert remembered == trace.record(make_step, 3, ON_CPU)
