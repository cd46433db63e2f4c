"""Records what a training step allocates and frees, by watching every operator. Needs torch.

It watches storages, so views and in-place operators count nothing; a block is freed with its storage's last reference.
What a kernel allocates inside an operator is not seen. Two such things are added by their rules: the matrix library's
workspace when a thread first multiplies, and the buffers of sums.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from ...facts.progress import BACKWARD, FORWARD
from ...measurement.live_blocks import OUTSIDE
from ...measurement.module_scopes import ModuleScopes, paths_of
from ..batch_model import (
    ACTIVATIONS,
    BUFFERS,
    PARAMETERS,
    TEMPORARIES,
    WORKSPACES,
    MemoryBlock,
    Recording,
    Skeleton,
    SumBuffer,
    with_frees_in_order,
)
from ..reductions import reduction_of
from . import onednn

_MULTIPLY = frozenset(
    f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "_scaled_mm")
)
_MULTIPLY_4_BITS = "bitsandbytes::gemm_4bit"
"""Creates a 16-bit copy of the layer's weight and multiplies by that. For few tokens (at most 1,536) cards have kernels
without that copy, which is not considered: there the estimate is higher by the copy."""
_SUMS = frozenset({torch.ops.aten.sum.default, torch.ops.aten.sum.dim_IntList, torch.ops.aten.mean.dim})
_NORMS = torch.ops.aten._foreach_norm.Scalar
_NORM_CHUNK, _NORM_BYTES = 65_536, 4
"""Elements that one block of threads adds up, and the bytes of its partial sum (`ForeachReduceOp.cu`)."""
_READ_DEVICE = torch.ops.prim.device.default
"""The operator that reads a tensor's device: two of three calls on fake tensors, so it is answered at once."""
_READ_A_VALUE = torch.ops.aten._local_scalar_dense.default
_LAST_RESULT_FIRST = frozenset({"aten::native_dropout"})
"""Operators that allocate their results on a card in the reverse of the order in which they return them: dropout its
mask first (`Dropout.cu`). In frozen layers the mask is freed at once, so the order decides where the next blocks go."""


class Recorder(TorchDispatchMode):
    """Records one device's blocks. Enter it around the steps, and `phase(name)` around each of their phases.

    Operators of the class `shards` are followed on this rank's part; `stream` gives the stream that requests memory.
    """

    def __init__(
        self,
        device_type: str,
        scopes: ModuleScopes | None = None,
        shards: type[Tensor] | None = None,
        stream: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shards, self._stream = shards, stream
        self._kind: str | None = None
        self._is_paused = False
        self._device_type = device_type
        self._scopes = scopes
        self._phase: str | None = None
        self._blocks: list[MemoryBlock] = []
        self._sizes_bytes: list[int] = []
        self._events: list[int] = []
        self._step_starts: list[int] = []
        self._live: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._has_workspace: set[bool] = set()
        self._sum_buffers: list[SumBuffer] = []
        self._counts: list[tuple[int, int]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the wrapper that would prevent it takes a tenth of a trace

    def recording(self, batch_size: int) -> Recording:
        events = with_frees_in_order(self._events, self._step_starts)
        skeleton = Skeleton(tuple(self._blocks), tuple(events), tuple(self._step_starts), tuple(self._sum_buffers))
        return Recording(batch_size, skeleton, tuple(self._sizes_bytes), tuple(self._counts))

    def load(self, model: nn.Module) -> None:
        """Record the model's own blocks, in the order in which `model.to(device)` would make them."""
        self._load(model, paths_of(model))

    def _load(self, module: nn.Module, paths: dict[nn.Module, str]) -> None:
        for child in module.children():
            self._load(child, paths)
        for tensors, kind in ((module.parameters, PARAMETERS), (module.buffers, BUFFERS)):
            for tensor in tensors(recurse=False):
                self._track(_of_this_rank(tensor), "load", kind, paths[module])

    def begin_step(self) -> None:
        self._step_starts.append(len(self._events))
        if self._scopes is not None:
            self._scopes.begin_step()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._phase = name
        yield
        self._phase = None

    def mark(self, kind: str, tensors: Iterable[tuple[str | None, Tensor]]) -> None:
        for module, tensor in tensors:
            known = self._live.get(_of_this_rank(tensor).untyped_storage()._cdata)
            if known is not None:
                self._blocks[known[0]] = self._blocks[known[0]]._replace(kind=kind, module=module)

    @contextmanager
    def of_kind(self, kind: str) -> Iterator[None]:
        """Let all that is allocated in the context be of this kind."""
        before, self._kind = self._kind, kind
        try:
            yield
        finally:
            self._kind = before

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def resized(self, tensor: Tensor, kind: str, operator: str) -> None:
        known = self._live.get(tensor.untyped_storage()._cdata)
        if known is not None:
            self._free(tensor.untyped_storage()._cdata, known[0])
        if tensor.untyped_storage().nbytes():
            self._track(tensor, operator, kind)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _READ_DEVICE:
            return args[0].device
        if func is _READ_A_VALUE:
            return _value(func, args)
        if self._is_paused:
            return func(*args, **(kwargs or {}))
        if self._shards is not None and self._shards in types:
            return NotImplemented  # the operator then runs on this rank's part, through this mode again
        name = func._schema.name
        if (made_of_others := self._kernel_made_of_others(name)) is not None:
            with self:
                return func._op_dk(made_of_others, *args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if self._device_type == "cpu" and name in onednn.OPERATORS:
            self._track_convolution(result, name, args)
            return result
        if isinstance(result, Tensor):
            self._track(result, name)
        elif isinstance(result, (tuple, list)):
            for part in reversed(result) if name in _LAST_RESULT_FIRST else result:
                for tensor in part if isinstance(part, (tuple, list)) else (part,):
                    if isinstance(tensor, Tensor):
                        self._track(tensor, name)
        if name in _MULTIPLY:
            self._note_workspace(name)
        if func in _SUMS and self._device_type == "cuda":
            self._note_sum(result, *args[:2])
        if func is _NORMS and self._device_type == "cuda":
            chunks = max(-(-tensor.numel() // _NORM_CHUNK) for tensor in args[0])
            self._pass_through([len(args[0]) * chunks * _NORM_BYTES], name)
        return result

    def _kernel_made_of_others(self, operator: str) -> torch._C.DispatchKey | None:
        if operator == _MULTIPLY_4_BITS:
            return torch._C.DispatchKey.CompositeExplicitAutograd
        if self._device_type == "cpu" and operator.startswith("bitsandbytes::optimizer"):
            return torch._C.DispatchKey.CPU
        return None

    def _note_sum(self, result: Tensor, summed: Tensor, dims: Sequence[int] | None = None) -> None:
        reduced = dims or range(summed.dim())
        sum_ = reduction_of(summed.shape, summed.stride(), reduced, result.element_size())
        if sum_ is not None:
            index = self._add(ACTIVATIONS if self._phase == FORWARD else TEMPORARIES, 0, "sum")
            self._events.append(~index)
            self._sum_buffers.append(SumBuffer(index, sum_.is_inner, sum_.vector, sum_.accumulator_bytes))
            self._counts.append((sum_.results, sum_.inputs))

    def _track_convolution(self, result: Any, operator: str, operands: Any) -> None:
        for number, tensor in enumerate(result if isinstance(result, tuple) else (result,)):
            if not isinstance(tensor, Tensor):
                continue
            copies = onednn.copies(operator, operands, number, tensor)
            self._pass_through(copies.computing, operator)
            self._track(tensor, operator)
            self._pass_through(copies.leaving, operator)

    def _pass_through(self, sizes_bytes: list[int], operator: str) -> None:
        kind = ACTIVATIONS if self._phase == FORWARD else TEMPORARIES
        for index in [self._add(kind, size, operator) for size in sizes_bytes]:
            self._events.append(~index)

    def _track(self, tensor: Tensor, operator: str, kind: str | None = None, module: str | None = None) -> None:
        if tensor.device.type != self._device_type:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._live:
            return
        kind = kind or self._kind or (ACTIVATIONS if self._phase == FORWARD else TEMPORARIES)
        index = self._add(kind, storage.nbytes(), operator, module)
        self._live[key] = (index, weakref.ref(storage, lambda _: self._free(key, index)))

    def _add(self, kind: str, size_bytes: int, operator: str, module: str | None = None) -> int:
        index = len(self._blocks)
        module = module or self._current_module()
        name = operator.removeprefix("aten::")
        self._blocks.append(MemoryBlock(kind, self._phase, name, module, self._stream()))
        self._sizes_bytes.append(size_bytes)
        self._events.append(index)
        return index

    def _current_module(self) -> str | None:
        """Return the module whose forward pass is running, or whose part of the backward pass."""
        if self._scopes is None or self._phase is None:
            return None
        if self._phase == BACKWARD:
            return self._scopes.current or self._scopes.of_current_node()
        return self._scopes.current or OUTSIDE.get(self._phase)

    def _free(self, key: int, index: int) -> None:
        if self._live.get(key, (None,))[0] == index:  # else the block was freed before, by a resize
            del self._live[key]
            self._events.append(~index)

    def _note_workspace(self, operator: str) -> None:
        """Record the workspace that the matrix library allocates once for each thread: this one, and autograd's."""
        is_autograd_s = self._phase == BACKWARD
        if self._device_type == "cuda" and is_autograd_s not in self._has_workspace:
            self._has_workspace.add(is_autograd_s)
            self._add(WORKSPACES, 0, operator)


def _of_this_rank(tensor: Tensor) -> Tensor:
    part: Tensor = getattr(tensor, "_local_tensor", tensor)
    return part


def _value(func: Any, args: Any) -> Any:
    """Return a tensor's value if it is known, else False or 0: no infinity was found, a mask is not all ones."""
    if not isinstance(args[0], FakeTensor):
        return func(*args)
    if args[0].constant is not None:
        return args[0].constant.item()
    return {torch.bool: False}.get(args[0].dtype, 0)
