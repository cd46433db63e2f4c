"""Lets one process stand in for a rank of many: its collectives complete at once, with the sizes of all ranks.

Every collective acts as if each other rank held what this one holds: a sum is this rank's part times the number of
ranks, a gathered tensor its part that many times. So tensors have the sizes that they have among real ranks, and losses
stay in their range; nothing is said about convergence or speed. What another rank alone can know (an object that rank 0
broadcasts) is read from the folder where the rank, emulated before, left it.

Only torch is imported: a training's own Python loads this file by its path.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d
from torch._C._distributed_c10d import HashStore, ProcessGroup, ReduceOp, Work
from torch.futures import Future

NAME = "emulated"
DEVICES = ("cpu", "cuda", "xpu", "hpu", "mps")
MOST_KEPT_BYTES, MOST_KEPT = 4096, 256  # of a broadcast tensor; how many of a group
_SUMS = ("PREMUL_SUM", "SUM")


class NotEmulated(RuntimeError):
    """Something that one process cannot do for a rank of many."""


class Broadcasts:
    """What ranks broadcast, kept in a folder for those that are emulated after them; without a folder nothing is."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.numbers: dict[str, int] = {}

    def next_of(self, group: str) -> str:
        """Return the key of the next broadcast of a group: every rank counts the same."""
        self.numbers[group] = number = self.numbers.get(group, 0) + 1
        return f"{group.replace('/', '_')}-{number}" if number <= MOST_KEPT else ""

    def keep(self, key: str, value: Any) -> None:
        if self.folder is not None and key:
            path = self.folder / key
            with suppress(OSError, TypeError, AttributeError, pickle.PicklingError):
                partial = path.with_name(f"{key}.partial")
                partial.write_bytes(pickle.dumps(value))
                partial.replace(path)

    def read(self, key: str) -> Any:
        """Return what was broadcast; None where its rank was not emulated before."""
        if self.folder is None or not key:
            return None
        try:
            return pickle.loads((self.folder / key).read_bytes())  # noqa: S301 - this script's own
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            return None


_Group: Any = ProcessGroup  # each of its methods has several signatures


class EmulatedGroup(_Group):  # type: ignore[misc]
    """A process group of `size` ranks of which only this one exists."""

    def __init__(self, rank: int, size: int, broadcasts: Broadcasts | None = None) -> None:
        super().__init__(rank, size)
        self.at, self.ranks, self.broadcasts = rank, size, broadcasts or Broadcasts(None)
        self.backend, self.named = NAME, ""

    def getBackendName(self) -> str:
        return NAME  # torch's C++ would look for the backend of any other name

    def _get_backend_name(self) -> str:
        return self.backend

    def _set_group_name(self, name: str) -> None:
        self.named = str(name)
        with suppress(TypeError, RuntimeError):
            super()._set_group_name(name)

    @property
    def group_name(self) -> str:
        return self.named

    def shutdown(self, *_: Any, **__: Any) -> None:
        """End nothing, and wait for nobody."""

    pg_name = group_name
    abort = set_timeout = monitored_barrier = shutdown

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Work:
        for tensor in _listed(tensors):
            _reduce(tensor, opts, self.ranks)
        return _done(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any = None, *others: Any, **named: Any) -> Work:
        """Reduce at the root; the others keep what they hold."""
        if _root(opts) == self.at:
            self.allreduce(tensors, opts)
        return _done(tensors)

    def broadcast(self, tensors: Any, opts: Any = None, *others: Any, **named: Any) -> Work:
        """Broadcast this rank's tensors; another rank's are known if that rank was emulated before."""
        for tensor in _listed(tensors):
            key = self.broadcasts.next_of(self.named)
            if self.broadcasts.folder is None or not 0 < tensor.nbytes <= MOST_KEPT_BYTES:
                continue
            if _root(opts) == self.at:
                self.broadcasts.keep(key, [str(tensor.dtype), tensor.detach().flatten().tolist()])
            elif (kept := self.broadcasts.read(key)) is not None:
                dtype, values = kept
                if dtype == str(tensor.dtype) and len(values) == tensor.numel():
                    tensor.detach().copy_(torch.tensor(values, dtype=tensor.dtype).view(tensor.shape))
        return _done(tensors)

    def barrier(self, *arguments: Any, **named: Any) -> Work:
        return _done([])

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Work:
        """Gather into lists, through one flat tensor as NCCL and gloo do."""
        inputs = _listed(inputs)
        outputs = [outputs] if outputs and torch.is_tensor(outputs[0]) else outputs
        for parts, own in zip(outputs, inputs, strict=True):
            if all(part.shape == own.shape for part in parts):
                flat = own.detach().new_empty((len(parts), *own.shape))
                flat.copy_(own.detach().expand_as(flat))
                for part, from_rank in zip(parts, flat, strict=True):
                    part.detach().copy_(from_rank)
            else:  # of different sizes: each one its own broadcast
                for part in parts:
                    _copy_what_fits(part, own)
        return _done(outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for parts, own in zip(outputs, inputs, strict=True):
            for part in parts:
                part.detach().copy_(own.detach())
        return _done(outputs)

    def _allgather_base(self, output: Any, own: Any, opts: Any = None, timeout: Any = None) -> Work:
        rows = output.detach().view(self.ranks, -1)
        rows.copy_(own.detach().reshape(1, -1).expand_as(rows))
        return _done([output])

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for output, own in zip(outputs, inputs, strict=True):
            self._allgather_base(output, own)
        return _done(outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, *others: Any, **named: Any) -> Work:
        """Gather at the root; the others give what they hold."""
        outputs = [outputs] if outputs and torch.is_tensor(outputs[0]) else outputs
        for parts, own in zip(outputs or [], _listed(inputs), strict=False):
            for part in parts:
                _copy_what_fits(part, own)
        return _done(outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, *others: Any, **named: Any) -> Work:
        """Take this rank's part where it is the root; else keep what it holds."""
        inputs = [inputs] if inputs and torch.is_tensor(inputs[0]) else inputs
        for output, parts in zip(_listed(outputs), inputs or [], strict=False):
            output.detach().copy_(parts[self.at].detach())
        return _done(outputs)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Work:
        """Reduce lists and take this rank's part, through one flat tensor as NCCL does."""
        inputs = [inputs] if inputs and torch.is_tensor(inputs[0]) else inputs
        for output, parts in zip(_listed(outputs), inputs, strict=True):
            if all(part.shape == output.shape for part in parts):
                flat = torch.stack([part.detach() for part in parts])
                output.detach().copy_(flat[self.at])
            else:
                output.detach().copy_(parts[self.at].detach())
            _reduce(output, opts, self.ranks)
        return _done(outputs)

    def _reduce_scatter_base(self, output: Any, own: Any, opts: Any = None, timeout: Any = None) -> Work:
        output.detach().view(-1).copy_(own.detach().view(self.ranks, -1)[self.at])
        _reduce(output, opts, self.ranks)
        return _done([output])

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for output, own in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, own, opts)
        return _done(outputs)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Work:
        """Receive from each rank what this one sends to itself."""
        for output in outputs:
            if output.shape != inputs[self.at].shape:
                raise NotEmulated("all_to_all with sizes of its own (expert parallelism): ranks hold different amounts")
            output.detach().copy_(inputs[self.at].detach())
        return _done(outputs)

    def alltoall_base(self, output: Any, own: Any, to_sizes: Any = None, from_sizes: Any = None, *_: Any) -> Work:
        sizes = {*(to_sizes or ()), *(from_sizes or ())}
        if len(sizes) > 1 or output.numel() != own.numel():
            raise NotEmulated("all_to_all with sizes of its own (expert parallelism): ranks hold different amounts")
        rows = output.detach().view(self.ranks, -1)
        rows.copy_(own.detach().view(self.ranks, -1)[self.at].clone().expand_as(rows))
        return _done([output])

    def send(self, tensors: Any, *_: Any) -> Work:
        return _done(tensors)

    recv = recv_anysource = send

    # torch 2.13 calls these beside the older names.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base


def _done(result: Any) -> Work:
    future: Future[Any] = Future()
    future.set_result(result)
    work: Work = _distributed_c10d._create_work_from_future(future)  # type: ignore[attr-defined]
    return work


def _listed(tensors: Any) -> Sequence[Any]:
    return [tensors] if torch.is_tensor(tensors) else tensors


def _root(opts: Any) -> int:
    return int(opts if isinstance(opts, int) else getattr(opts, "rootRank", 0))


def _copy_what_fits(part: Any, own: Any) -> None:
    flat, given = part.detach().view(-1), own.detach().reshape(-1)
    size = min(flat.numel(), given.numel())
    flat[:size].copy_(given[:size])


def _reduce(tensor: Any, opts: Any, ranks: int) -> None:
    """Reduce a tensor as if each rank held it: only a sum changes it."""
    operation = getattr(opts, "reduceOp", ReduceOp.SUM if opts is None else opts)
    name, factor = _name_and_factor(operation)
    if name not in _SUMS or tensor.dtype == torch.bool:
        return
    times = ranks * (1 if factor is None else float(factor))
    if times != 1:
        tensor.detach().mul_(int(times) if times == int(times) else times)


def _name_and_factor(operation: Any) -> tuple[str, Any]:
    kind, factor = operation, None
    if isinstance(operation, ReduceOp):
        state: Any = operation.__getstate__()
        kind, factor = state
    return str(getattr(kind, "name", kind)).rpartition(".")[2], factor


@contextmanager
def emulated_ranks(rank: int, size: int, folder: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Make every process group that torch creates inside an emulated one, and leave torch as it was."""
    restore = emulate(rank, size, folder)
    try:
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        restore()


def emulate(rank: int, size: int, folder: str | os.PathLike[str] | None = None) -> Callable[[], None]:
    """Make every process group that torch creates from now on an emulated one; return what takes that back.

    A script's `init_process_group` names the backend that strategies see; `folder` holds earlier ranks' broadcasts.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is none of {size}")
    c10d, broadcasts = dist.distributed_c10d, Broadcasts(folder)
    make_group = c10d._new_process_group_helper

    def create(options: Any, _: Any) -> EmulatedGroup:
        return EmulatedGroup(options.group_rank, options.group_size, broadcasts)

    def made(
        group_size: int, group_rank: int, ranks: Any, backend: Any, store: Any, *others: Any, **options: Any
    ) -> Any:
        if not ranks:
            group_size, group_rank = size, rank
        options |= {"backend_options": None} if "backend_options" in options else {}
        options |= {"device_id": None} if "device_id" in options else {}
        group, store = make_group(group_size, group_rank, ranks, c10d.Backend(NAME), store, *others, **options)
        if isinstance(group, EmulatedGroup):
            asked = c10d.Backend(backend) if backend else c10d.Backend("undefined")
            group.backend = str(asked)
            c10d._world.pg_map[group] = (asked, store)
            c10d._world.pg_backend_config[group] = str(c10d.BackendConfig(asked))
        return group, store

    def meet(*_: Any, **__: Any) -> Iterator[tuple[Any, int, int]]:
        yield HashStore(), rank, size

    patches = {
        **{"_new_process_group_helper": made, "rendezvous": meet, "_is_barrier_after_init": lambda: 0},
        **_object_collectives(c10d, broadcasts),
    }
    defaults = dict(c10d.Backend.default_device_backend_map)
    c10d.Backend.register_backend(NAME, create, extended_api=True, devices=list(DEVICES))
    c10d.Backend.default_device_backend_map = defaults  # no device's own choice
    return _patched((c10d, dist), patches)


def _patched(modules: Sequence[Any], patches: Mapping[str, Any]) -> Callable[[], None]:
    """Put functions in place of a module's own wherever they are there; return what takes that back."""
    before = [(module, name, getattr(module, name)) for module in modules for name in patches if hasattr(module, name)]
    for module, name, _ in before:
        setattr(module, name, patches[name])

    def restore() -> None:
        for module, name, own in before:
            setattr(module, name, own)

    return restore


def _object_collectives(c10d: Any, broadcasts: Broadcasts) -> dict[str, Callable[..., Any]]:
    """Return the collectives of objects whose result only their root knows; torch's own do for the others."""

    def known(group: Any, source: int | None, group_source: int | None, own: Any) -> Any:
        group = group or c10d._get_default_group()
        root = source if group_source is None else c10d.get_global_rank(group, group_source)
        key = f"object-{broadcasts.next_of('object-' + group.group_name)}"
        if c10d.get_rank() == (root or 0):
            broadcasts.keep(key, own)
            return own
        if (kept := broadcasts.read(key)) is None:
            raise NotEmulated(
                f"rank {c10d.get_rank()} needs an object that rank {root or 0} sends: emulate that one before it"
                f" (--rank {root or 0},{c10d.get_rank()})"
            )
        return kept

    def broadcast_object_list(
        objects: list[Any],
        src: int | None = None,
        group: Any = None,
        device: Any = None,
        group_src: int | None = None,
        **_: Any,
    ) -> None:
        if not c10d._rank_not_in_group(group):
            objects[:] = known(group, src, group_src, list(objects))

    def scatter_object_list(
        output: list[Any], objects: Any = None, src: int | None = None, group: Any = None, group_src: Any = None
    ) -> None:
        if not c10d._rank_not_in_group(group):
            output[0] = known(group, src, group_src, objects)[c10d.get_rank(group)]

    def recv_object_list(*_: Any, **__: Any) -> None:
        raise NotEmulated("recv_object_list: what another rank sends is not known")

    return {
        "broadcast_object_list": broadcast_object_list,
        "scatter_object_list": scatter_object_list,
        "recv_object_list": recv_object_list,
    }
