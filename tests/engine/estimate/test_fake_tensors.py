"""Fake tensors that remember what operators return: the same as torch's, call after call."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from engine.estimate.tracing import fake_tensors, trace
from engine.estimate.tracing.fake_tensors import FakeTensors, _facts
from engine.spec import RunSpec

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
