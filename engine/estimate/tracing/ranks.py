"""Traces the step of rank 0 of several, with torch's own FSDP2, and with DDP's buckets as its reducer makes them.

FSDP2 runs as it is, on the fake process group of torch, whose collectives copy nothing. In place of CUDA's streams
stand numbers, as the allocator keeps the blocks of each apart. The weights it gathers are storages that it resizes,
which no operator shows: its two functions for it are followed.

DDP's reducer is C++ that reads tensors back, which fake tensors refuse. So its buckets are made here by its own
assignment (`torch/csrc/distributed/c10d/reducer.cpp` of torch 2.13: `initialize_buckets`, `rebuild_buckets`,
`finalize_backward`). `benchmarks/estimated_ranks.py` compares both with real tensors.
"""

from __future__ import annotations

import importlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import HashStore, _compute_bucket_assignment_by_size
from torch.distributed.device_mesh import init_device_mesh

from ...errors import EstimateImpossible
from ...measurement.module_scopes import ModuleScopes
from ...measurement.optimizers import make_optimizer
from ...measurement.ranks import sharded_step
from ...measurement.step import TrainingStep
from ...measurement.workloads import Built
from ...settings.rank_settings import FSDP, ZERO1
from ...settings.spec import RunSpec
from ..batch_model import COMMUNICATION
from .recorder import Recorder

_BUCKET_BYTES, _FIRST_BUCKET_BYTES = 25 << 20, 1 << 20
"""DDP's `bucket_cap_mb` and `_DEFAULT_FIRST_BUCKET_BYTES`."""
_SENT_BYTES = 250 << 20
"""DDP's `broadcast_bucket_size`."""
_FSDP = "torch.distributed.fsdp._fully_shard"
_WITH_DEVICES = ("_fsdp_collectives", "_fsdp_init", "_fsdp_param_group", "_fsdp_state")
"""Modules of FSDP2 that ask for the functions of a kind of device."""
_groups: list[_Group] = []
"""The group that stands, while one does."""


class _Event:
    """A point in a stream: nothing waits here."""

    def record(self, *_: Any) -> _Event:
        return self

    def wait(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _Stream:
    """A stream, by its number: 0 is that of the training itself."""

    def __init__(self, number: int) -> None:
        self.number = number

    def wait_stream(self, _: Any) -> None:
        pass

    def wait_event(self, _: Any) -> None:
        pass

    def record_event(self, *_: Any) -> _Event:
        return _Event()


class _Streams:
    """What FSDP2 needs of `torch.cuda`, without a card."""

    Event = _Event

    def __init__(self) -> None:
        self._current = _Stream(0)
        self._count = 0

    @property
    def number(self) -> int:
        return self._current.number

    def Stream(self, **_: Any) -> _Stream:  # the name that torch.cuda has
        self._count += 1
        return _Stream(self._count)

    def current_stream(self, *_: Any) -> _Stream:
        return self._current

    @contextmanager
    def stream(self, chosen: _Stream) -> Iterator[None]:
        before, self._current = self._current, chosen
        try:
            yield
        finally:
            self._current = before

    def current_device(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Group:
    """The mesh of the ranks, and the streams of the device."""

    mesh: Any
    streams: _Streams


@contextmanager
def group_of(ranks: int, device_type: str) -> Iterator[None]:
    """Let this process be rank 0 of so many. Enter it outside of fake tensors: a mesh reads its ranks."""
    if dist.is_initialized():
        raise EstimateImpossible("torch.distributed is in use in this process; estimate in one of its own")
    importlib.import_module("torch.distributed.fsdp")
    streams = _Streams()
    with ExitStack() as stack:
        for name in _WITH_DEVICES:
            stack.enter_context(patch(f"{_FSDP}.{name}._get_device_handle", lambda *_: streams))
        stack.enter_context(patch("torch.accelerator.current_stream", streams.current_stream))
        stack.enter_context(patch.object(sys, "excepthook", sys.excepthook))  # which every new group replaces
        dist.init_process_group("fake", store=HashStore(), rank=0, world_size=ranks)
        stack.callback(dist.destroy_process_group)
        mesh = init_device_mesh("cpu", (ranks,))
        mesh._device_type = device_type
        _groups.append(_Group(mesh, streams))
        stack.callback(_groups.clear)
        yield


@contextmanager
def followed(recorder: Recorder) -> Iterator[None]:
    """Note in the recording what FSDP2 allocates and frees without an operator, and in which stream it allocates."""
    parameters, collectives = sys.modules[f"{_FSDP}._fsdp_param"], sys.modules[f"{_FSDP}._fsdp_collectives"]
    group = sys.modules[f"{_FSDP}._fsdp_param_group"]

    def resized(tensor: Tensor, size_bytes: int) -> None:
        storage = tensor.untyped_storage()
        if storage.nbytes() != size_bytes:
            storage.resize_(size_bytes)
            recorder.resized(tensor, COMMUNICATION, "all_gather")

    def allocated(tensor: Tensor) -> None:
        resized(tensor, tensor.numel() * tensor.itemsize)

    gathered, buffers = parameters.FSDPParam, collectives.DefaultAllocMixin
    with ExitStack() as stack:
        for module in (parameters, group):
            stack.enter_context(patch.object(module, "alloc_storage", allocated))
        stack.enter_context(patch.object(parameters, "free_storage", lambda tensor: resized(tensor, 0)))
        for owner, name in ((gathered, "init_all_gather_outputs"), (buffers, "allocate")):
            stack.enter_context(_within(owner, name, lambda: recorder.of_kind(COMMUNICATION)))
        # which shape and layout a result of shards has is found out by running the operator on tensors of no memory
        propagator = sys.modules["torch.distributed.tensor._sharding_prop"].ShardingPropagator
        stack.enter_context(_within(propagator, "_propagate_tensor_meta_non_cached", recorder.paused))
        yield


def _within(owner: Any, name: str, context: Callable[[], AbstractContextManager[None]]) -> AbstractContextManager[Any]:
    function = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return patch.object(owner, name, wrapped)


def recorder_of_shards(device_type: str, scopes: ModuleScopes) -> Recorder:
    sharded: Any = importlib.import_module("torch.distributed.tensor")
    return Recorder(device_type, scopes, sharded.DTensor, lambda: _groups[0].streams.number)


def step_of_rank(spec: RunSpec, built: Built, device: torch.device) -> TrainingStep:
    if spec.strategy == FSDP:
        return sharded_step(spec, built, device, _groups[0].mesh)
    return _BucketStep(spec, built, device)


class _BucketStep(TrainingStep):
    """A step whose gradients are reduced in DDP's buckets, beside which they stay: no views of them."""

    def __init__(self, spec: RunSpec, built: Built, device: torch.device) -> None:
        super().__init__(spec, built, device)
        self._learned = [parameter for parameter in built.model.parameters() if parameter.requires_grad]
        self._buffers = [buffer for buffer in built.model.buffers() if buffer is not None]
        self._buckets: list[Tensor] | None = None
        self._ready: dict[nn.Parameter, None] = {}
        self._is_rebuilt = False
        for parameter in self._learned:
            parameter.register_post_accumulate_grad_hook(lambda ready: self._ready.setdefault(ready))
        if spec.strategy == ZERO1:
            self.optimizer = make_optimizer(spec.optimizer, partition(self._learned, spec.ranks)[0])

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Make the buckets, in the order of the first backward pass as soon as that is known, and send the buffers."""
        if self._buckets is None:
            _send([*self.built.model.parameters(), *self._buffers])  # as rank 0 does when DDP is made
            self._allocate(list(reversed(_assigned(self._learned))))
            self._used = torch.empty(len(self._learned), dtype=torch.int32, device=self.device)
        elif not self._is_rebuilt and len(self._ready) == len(self._learned):
            self._is_rebuilt = True
            self._allocate(_assigned(list(self._ready), list(range(len(self._ready)))))
        _send(self._buffers)
        return super().forward(batch)

    def _allocate(self, buckets: Sequence[Sequence[Tensor]]) -> None:
        self._buckets = None  # the old ones are freed before
        self._buckets = [_flat(tensors) for tensors in buckets]

    @property
    def buckets(self) -> list[Tensor]:
        return [*self._buckets, self._used] if self._buckets else []


def _assigned(
    tensors: list[Any], order: Sequence[int] = (), limits: Sequence[int] = (_FIRST_BUCKET_BYTES, _BUCKET_BYTES)
) -> list[list[Tensor]]:
    indices, _ = _compute_bucket_assignment_by_size(tensors, list(limits), [False] * len(tensors), list(order))
    return [[tensors[index] for index in bucket] for bucket in indices]


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.empty(sum(map(Tensor.numel, tensors)), dtype=tensors[0].dtype, device=tensors[0].device)


def _send(tensors: list[Tensor]) -> None:
    """Allocate and free the flat copies in which rank 0 sends tensors: two at a time (`comm.cpp`)."""
    sent: deque[Tensor] = deque()
    for bucket in _assigned(tensors, limits=[_SENT_BYTES]) if tensors else []:
        if len(sent) == 2:
            sent.popleft()
        sent.append(_flat(bucket))


def partition(parameters: Iterable[nn.Parameter], ranks: int) -> list[list[nn.Parameter]]:
    """Share parameters among ranks as `ZeroRedundancyOptimizer` does: the largest first, to the one with the least."""
    parts: list[list[nn.Parameter]] = [[] for _ in range(ranks)]
    sizes = [0] * ranks
    for parameter in sorted(parameters, key=Tensor.numel, reverse=True):
        rank = sizes.index(min(sizes))
        parts[rank].append(parameter)
        sizes[rank] += parameter.numel()
    return parts
