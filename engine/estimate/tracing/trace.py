"""Traces real training steps under fake tensors: no data, no device, a second or two a step. Needs torch.

It runs `TrainingStep` on the model and batch of `workloads.build`, as a probe does. Cards are traced on fake `cuda`
tensors; where this torch does not support those, on fake `cpu` tensors, whose operators differ somewhat (no fused
dropout, other autocast lists): labelled approximate, with the reason. For the CPU they are exact. No card is visible.
`python benchmarks/prediction_error.py --cpu` compares traces with the allocator's events of real steps.
"""

from __future__ import annotations

import gc
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ...errors import EngineError, EstimateImpossible
from ...measurement.module_scopes import ModuleScopes, gradients_of, state_of
from ...measurement.optimizers import optimizer_class
from ...measurement.step import TrainingStep, apply_precision
from ...measurement.workloads import build, equal_layers
from ...settings.optimizers import OPTIMIZERS
from ...settings.rank_settings import DDP, FSDP, ZERO1
from ...settings.spec import MEMORY_STEPS, RunSpec
from ...settings.step_settings import FLASH, PURE_BF16
from ..attention_family import Family, family_of
from ..batch_model import COMMUNICATION, GRADIENTS, STATE, BatchModel, MemoryModel, Recording, RetracedModel, model_of
from ..stored.stored_traces import TRACED_MICRO_BATCHES
from ..types import Method
from . import attention, fake_cuda, layers
from .fake_tensors import FakeTensors
from .hidden_devices import devices_hidden
from .recorder import Recorder

if TYPE_CHECKING:
    from ..gpus import Gpu

MakeStep = Callable[[torch.device], TrainingStep]

TRACED_BATCH_SIZES = (3, 5, 8)
"""Two for the line, one to check it. Not 1: a dimension of size one has a layout unlike any other."""

MANY_LAYERS = 12
"""From so many equal layers on, traces of a few of them are less work than traces of all."""

_KNOWN_CPU = "AVX512"
_OTHER_BUFFERS = "this CPU has no AVX-512, and takes other buffers for convolutions than the known ones"
"""On a CPU with AVX2 alone resnet18 took 19 % less than a real step: 106 of 130 MB at batch 8."""
_NEEDS_DATA = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.UnsupportedOperatorException,
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a trace is made: the device of the fake tensors and the attention kernels of the card.

    `approximate_because`: why `cpu` stands in for a card, if so; `sharded_over`: ranks of the group of an FSDP2 trace.
    """

    method: Method
    family: Family | None
    approximate_because: str | None = None
    sharded_over: int = 1

    @property
    def device_type(self) -> str:
        return "cuda" if self.method == "fake_cuda" else "cpu"


def conditions_for(gpu: Gpu | None, precision: str) -> Conditions:
    """Return how `gpu` is traced; None is the CPU. Cards with equal conditions share one trace."""
    if gpu is None:
        return Conditions("fake_cpu", None)
    obstacle = fake_cuda.obstacle()
    method: Method = "approximate_fake_cpu" if obstacle else "fake_cuda"
    return Conditions(method, family_of(gpu, precision), obstacle)


def memory_model(spec: RunSpec, gpu: Gpu | None, alike: set[Family] | None = None) -> MemoryModel:
    """Return what the steps allocate at any batch size, on a CPU without `gpu`; families that differ leave `alike`."""
    _prepare(spec, gpu)
    conditions = _conditions_of(spec, gpu)
    if gpu is None and spec.workload.architecture == "cnn" and torch.backends.cpu.get_cpu_capability() != _KNOWN_CPU:
        conditions = replace(conditions, approximate_because=_OTHER_BUFFERS)
    count = _equal_layers(spec)
    model = count and _model_of_layers(spec, count, conditions, alike)
    return model or model_of_steps(step_maker(spec), conditions, alike)


def model_of_one_size(spec: RunSpec, gpu: Gpu | None) -> MemoryModel:
    """Return what the steps allocate at requested sizes, traced one by one: for one size a third of the work."""
    _prepare(spec, gpu)
    conditions, count = _conditions_of(spec, gpu), _equal_layers(spec)

    def trace(batch_size: int) -> Recording:
        if count:
            few = [record(step_maker(spec, each), batch_size, conditions) for each in layers.FEW]
            if (found := layers.repeated(few, count)) is not None:
                return found.recording(few[1])
        return record(step_maker(spec), batch_size, conditions)

    return RetracedModel(trace, (), conditions.method, conditions.approximate_because)


def _conditions_of(spec: RunSpec, gpu: Gpu | None) -> Conditions:
    made = conditions_for(gpu, spec.precision)
    return replace(made, sharded_over=spec.ranks) if spec.strategy == FSDP else made


def _equal_layers(spec: RunSpec) -> int | None:
    """Return how many layers a few of them stand for, or None. DDP and ZeRO-1 fill buckets and shares by size."""
    differ = spec.frozen_blocks is not None or layers.names_a_layer(spec.lora_targets or "")
    differ = differ or spec.strategy in (DDP, ZERO1)
    count = None if differ else equal_layers(spec)
    return count if count and count >= MANY_LAYERS else None


def _model_of_layers(spec: RunSpec, count: int, conditions: Conditions, alike: set[Family] | None) -> BatchModel | None:
    """Return the model of a stack of layers from traces of few; None where these do not tell it."""
    make_middle, size = step_maker(spec, layers.MIDDLE), TRACED_BATCH_SIZES[-1]
    traced: dict[int, Recording] = {}

    def trace(batch_size: int, *, without_last_step: bool = False) -> Recording:
        traced[batch_size] = record(make_middle, batch_size, conditions, alike, MEMORY_STEPS - without_last_step)
        return traced[batch_size]

    middle = model_of(trace, TRACED_BATCH_SIZES, conditions.method, conditions.approximate_because)
    if not isinstance(middle, BatchModel):
        return None
    fewest, most = (record(step_maker(spec, each), size, conditions, alike) for each in (layers.FEWEST, layers.MOST))
    found = layers.repeated([fewest, traced[size], most], count)
    return None if found is None else found.model(middle)


def _prepare(spec: RunSpec, gpu: Gpu | None) -> None:
    """Set this process up for traces of the spec. Raises EstimateImpossible for what no trace shows."""
    if spec.torch_compile:
        raise EstimateImpossible("what torch.compile joins, keeps and frees is not in a trace; measure it instead")
    if gpu is None and (spec.precision == PURE_BF16 or not spec.workload.has_cpu_estimate):
        raise EstimateImpossible("a CPU's kernels take buffers for it that a trace does not see; measure it instead")
    if spec.channels_last:
        raise EstimateImpossible("in which layout convolutions keep channels last is not traced; measure it instead")
    if spec.load_in_8bit:
        # MatMul8bitLt keeps the outliers' columns; a CPU runs MatMul8bitFp, so nothing shows whether a trace is right
        raise EstimateImpossible("what LLM.int8 keeps depends on outliers in the data; measure it, or estimate 4 bits")
    if spec.liger_loss:
        raise EstimateImpossible("Liger's kernels cannot be traced; measure it instead, or estimate a loss in chunks")
    if spec.attention == FLASH:
        raise EstimateImpossible(f"the kernels of {FLASH} cannot be traced; measure it instead, or estimate sdpa")
    if spec.ranks > 1 and not torch.distributed.is_available():
        raise EstimateImpossible("this build of torch has no torch.distributed; several GPUs are estimated with it")
    conditions = conditions_for(gpu, spec.precision)
    is_offloaded = spec.offload_activations or spec.offload_optimizer
    moves_memory = is_offloaded or OPTIMIZERS[spec.optimizer].unpaged is not None
    if moves_memory and conditions.method != "fake_cuda":
        raise EstimateImpossible(f"what stays on the device is not traced here ({conditions.approximate_because})")
    apply_precision(spec.precision)


def step_maker(spec: RunSpec, layer_count: int | None = None) -> MakeStep:
    """Return a function that makes the step to trace: with the same memory as the real one, and faster to trace.

    Random weights have the shapes of trained ones, and all micro-batches from the second on allocate the same.
    """
    untrained = replace(spec, pretrained=False, accumulation_steps=min(spec.accumulation_steps, TRACED_MICRO_BATCHES))
    optimizer_class(spec.optimizer)  # a library imported during a trace would get fake tensors as constants
    if spec.load_in_4bit:
        importlib.import_module("...measurement.quantization", __package__)
    make: Callable[..., TrainingStep] = TrainingStep
    if spec.ranks > 1:
        from .ranks import step_of_rank as make
    return lambda device: make(untrained, build(untrained, device, layer_count), device)


def model_of_steps(make_step: MakeStep, conditions: Conditions, alike: set[Family] | None = None) -> MemoryModel:
    """Return the memory model of any training step. Raises EstimateImpossible where it cannot be traced."""

    def trace(batch_size: int, *, without_last_step: bool = False) -> Recording:
        return record(make_step, batch_size, conditions, alike, MEMORY_STEPS - without_last_step)

    return model_of(trace, TRACED_BATCH_SIZES, conditions.method, conditions.approximate_because)


def record(
    make_step: MakeStep,
    batch_size: int,
    conditions: Conditions,
    alike: set[Family] | None = None,
    steps: int = MEMORY_STEPS,
) -> Recording:
    try:
        with _as_on(conditions, alike):
            return _recorded(make_step, batch_size, conditions, steps)
    except EngineError:
        raise
    except _NEEDS_DATA as exc:
        raise EstimateImpossible(f"what this model allocates depends on its data ({exc}); measure it instead") from exc
    except Exception as exc:
        reason = f"{type(exc).__name__}: {str(exc)[:500]}"
        raise EstimateImpossible(f"a step cannot be traced without a device ({reason}); measure it instead") from exc


def _recorded(make_step: MakeStep, batch_size: int, conditions: Conditions, steps: int) -> Recording:
    device, is_sharded = torch.device(conditions.device_type), conditions.sharded_over > 1
    with ExitStack() as stack:
        if is_sharded:
            from . import ranks  # not every build of torch has torch.distributed

            stack.enter_context(ranks.group_of(conditions.sharded_over, device.type))
        stack.enter_context(FakeTensors())
        stack.enter_context(_without_tables())
        with device:
            step = make_step(device)
        model = step.built.model
        scopes = ModuleScopes(model)
        recorder = ranks.recorder_of_shards(device.type, scopes) if is_sharded else Recorder(device.type, scopes)
        recorder.load(model)
        if is_sharded:
            stack.enter_context(ranks.followed(recorder))
        with recorder, scopes.followed(), _rows_of_one_sequence(step):
            for _ in range(steps):
                recorder.begin_step()
                step.begin()
                step(batch_size, recorder.phase)
                recorder.mark(GRADIENTS, gradients_of(model))
                recorder.mark(STATE, state_of(model, step.state))
                recorder.mark(COMMUNICATION, ((None, bucket) for bucket in step.buckets))
        return recorder.recording(batch_size)


@contextmanager
def _without_tables() -> Iterator[None]:
    """Replace the table that bitsandbytes keeps by one without data: else each layer would convert it again."""
    bitsandbytes = sys.modules.get("bitsandbytes.functional")
    if bitsandbytes is None:
        yield
        return
    with patch.dict(bitsandbytes.name2qmap, dynamic=_table_of_8_bit_values()):
        yield


def _rows_of_one_sequence(step: TrainingStep) -> AbstractContextManager[Any]:
    """Tell transformers that rows are not packed: without data it makes a mask, which rules out a kernel."""
    masking = sys.modules.get("transformers.masking_utils")
    # the batch that is looked at is a part of the trace: others have none, whatever was traced here before
    if masking is None or step.spec.workload.library != "transformers" or "position_ids" in step.built.make_batch(1):
        return nullcontext()
    return patch.object(masking, "find_packed_sequence_indices", lambda _: None)


@contextmanager
def _as_on(conditions: Conditions, alike: set[Family] | None) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # warnings are about missing devices
        gc.collect()
        if not gc.get_freeze_count():
            gc.freeze()  # what was imported is no garbage, and would be searched again before every trace
        if gc.isenabled():  # collections come at different events at different batch sizes, and would free blocks there
            gc.disable()
            stack.callback(gc.enable)
        # peft copies a classifier's head, and a copy of a fake tensor would copy its mode with all that it refers to
        stack.enter_context(patch.object(FakeTensorMode, "__deepcopy__", lambda mode, _: mode, create=True))
        for name, change in _CHANGES.items():
            stack.enter_context(patch(name, change))
        initialization = sys.modules.get("transformers.initialization")
        if initialization is not None:  # this module keeps functions of torch
            stack.enter_context(patch.dict(initialization.TORCH_INIT_FUNCTIONS, trunc_normal_=_leave_as_it_is))
        if (bitsandbytes := sys.modules.get("bitsandbytes.functional")) is not None:
            stack.enter_context(patch.object(bitsandbytes, "create_dynamic_map", _table_of_8_bit_values))
            stack.enter_context(patch.object(bitsandbytes, "get_4bit_type", _table_of_4_bit_values))
            stack.enter_context(patch.multiple(bitsandbytes, **_PAGING))
        for module in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
            # optimizers choose their foreach path by the exact type of the parameters
            types = __import__(module, fromlist=["_"])._foreach_supported_types
            types.append(FakeTensor)
            stack.callback(types.remove, FakeTensor)
        stack.enter_context(fake_cuda.enabled() if conditions.method == "fake_cuda" else devices_hidden())
        stack.enter_context(attention.as_on(conditions.family, alike) if conditions.family else nullcontext())
        yield


def _leave_as_it_is(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return tensor


def _table_of_8_bit_values(*args: Any, **kwargs: Any) -> torch.Tensor:
    """Return a table like the one of bitsandbytes, which reads values back, on the CPU like that one."""
    return torch.empty(256, device="cpu")


def _table_of_4_bit_values(typename: str, device: torch.device, blocksize: int = 64) -> torch.Tensor:
    """Return a table like the one that bitsandbytes makes for every layer, without the work of making it."""
    return torch.empty(16, device=device)


def _paged(*shape: int, dtype: torch.dtype, device: torch.device) -> Any:
    """Return a tensor of unified memory: to PyTorch it is the host's, as a real one is."""
    tensor: Any = torch.empty(shape, dtype=dtype, device="cpu")
    tensor.is_paged, tensor.page_deviceid = True, device.index
    return tensor


_PAGING: dict[str, Any] = {"get_paged": _paged, "fill": lambda *_: None, "prefetch_tensor": lambda *_: None}
"""Functions of bitsandbytes that call the driver."""

_CHANGES: dict[str, Callable[..., Any]] = {
    "torch.nn.Module.to": lambda module, *_, **__: module,  # built on their device: fake modules cannot be moved
    "torch.nn.init.trunc_normal_": _leave_as_it_is,  # reads back what it wrote
    "torch.cuda.amp.common.amp_definitely_not_available": lambda: False,
    "torch.cuda.is_bf16_supported": lambda *_, **__: True,
    # mixtures of experts then use an operator that can be traced in any precision and allocates only its result
    "torch.cuda.get_device_capability": lambda *_: (0, 0),
    "torch.cuda.synchronize": lambda *_: None,  # bitsandbytes waits for each of its updates
    "torch.cuda.is_current_stream_capturing": lambda: False,  # would start the driver
}
