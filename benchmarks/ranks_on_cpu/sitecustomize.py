"""Lets scripts that insist on GPUs train on a CPU, unchanged, and tells the memory of gloo's own buffers apart.

MemoryMark's hook runs this file, as the user's own `sitecustomize`. With RANKS_ON_CPU set to a number, torch says that
the CPU is so many accelerators, joined by gloo. With WITHOUT_STAGING set, what is allocated inside a range of gloo's
(`c10d::`, `gloo:`), which NCCL does not take from PyTorch's allocator, is left out of what the hook reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

STAGING = ("c10d::", "gloo:")


def train_on_cpu(count: int) -> None:
    """Answer what a script asks of its GPUs, and put on the CPU what it puts on one."""
    import torch
    from torch.distributed import distributed_c10d
    from torch.utils.data import DataLoader

    cpu = torch.device("cpu")
    accelerator: Any = torch.accelerator
    accelerator.is_available = lambda: True
    accelerator.current_accelerator = lambda *_, **__: cpu
    accelerator.device_count = lambda: count
    accelerator.set_device_index = torch.cuda.set_device = lambda *_: None  # type: ignore[assignment]
    for kind in (torch.Tensor, torch.nn.Module):
        kind.to = _with(kind.to, lambda args, options: ((cpu, *args[1:]) if _is_device(args) else args, options))  # type: ignore[assignment]
    wrapped: Any = torch.nn.parallel.DistributedDataParallel
    wrapped.__init__ = _with(wrapped.__init__, lambda args, options: (args, options | {"device_ids": None}))
    DataLoader.__init__ = _with(  # type: ignore[method-assign]
        DataLoader.__init__, lambda args, options: (args, options | {"pin_memory": False})
    )
    begin = distributed_c10d.init_process_group

    def joined(backend: Any = None, *others: Any, **options: Any) -> None:
        begin("gloo", *others, **options | {"device_id": None})

    torch.distributed.init_process_group = distributed_c10d.init_process_group = joined


def _is_device(arguments: Any) -> bool:
    return bool(arguments) and (isinstance(arguments[0], int) or type(arguments[0]).__name__ == "device")


def _with(function: Any, changed: Any) -> Any:
    def called(own: Any, *arguments: Any, **options: Any) -> Any:
        arguments, options = changed(arguments, options)
        return function(own, *arguments, **options)

    return called


def leave_staging_out() -> None:
    """Make the hook read the allocator's events without those inside a range of gloo's."""
    import memorymark_read as read  # type: ignore[import-not-found]

    def outside(node: Any) -> Iterator[list[int]]:
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.tag.name == "Allocation":
                if each.extra_fields.device.type == "cpu":
                    yield [each.start_time_ns, each.extra_fields.ptr, each.extra_fields.alloc_size]
            elif each.name.startswith("memorymark."):
                yield [each.start_time_ns, int(each.name.partition(".")[2])]
            if not each.name.startswith(STAGING):
                waiting.extend(reversed(each.children))

    def allocator_events(profile: Any) -> list[list[int]]:
        roots = profile.profiler.kineto_results.experimental_event_tree()
        return [event for root in roots for event in outside(root)]

    read.allocator_events = allocator_events


if "MEMORYMARK_HOOK" in os.environ and "torch.distributed.run" not in sys.orig_argv:
    if os.environ.get("WITHOUT_STAGING"):
        leave_staging_out()
    if os.environ.get("RANKS_ON_CPU"):
        train_on_cpu(int(os.environ["RANKS_ON_CPU"]))
