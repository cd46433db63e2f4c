"""Lets this process stand in for one rank of many (`--emulate-ranks`), and refuses by name what cannot be emulated."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

HELPS = "Measure it on its real ranks: leave out --emulate-ranks"
REFUSED = {
    "torch.distributed.tensor.parallel.api": ("parallelize_module", "tensor parallelism (parallelize_module)"),
    "torch.distributed.pipelining.stage": ("_PipelineStageBase.__init__", "pipelining (torch.distributed.pipelining)"),
    "torch.distributed.tensor.experimental._attention": ("context_parallel", "context parallelism (context_parallel)"),
    "torch.distributed.tensor.experimental._context_parallel._attention": (
        "context_parallel",
        "context parallelism (context_parallel)",
    ),
    "torch.distributed.rpc": ("init_rpc", "torch.distributed.rpc"),
    "torch.distributed.optim.zero_redundancy_optimizer": (
        "ZeroRedundancyOptimizer.consolidate_state_dict",
        "ZeroRedundancyOptimizer.consolidate_state_dict, which collects the state of all ranks for a checkpoint,",
    ),
    "deepspeed": ("initialize", "a DeepSpeed engine (deepspeed.initialize)"),
    "megatron.core.parallel_state": ("initialize_model_parallel", "Megatron's model parallelism"),
    "horovod.torch": ("init", "Horovod"),
}
"""By module: the function that begins a group, and the library's usual name."""
LAUNCHER = "torch.distributed.launcher.api"


def stand_in(watched: Any, torch: Any) -> None:
    settings = watched.settings["emulated"]
    if not torch.distributed.is_available():
        refuse(watched, "a PyTorch without torch.distributed")
    spec: Any = importlib.util.spec_from_file_location("memorymark_emulated_group", settings["group_file"])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.emulate(settings["rank"], settings["size"], settings["folder"])
    torch.multiprocessing.spawn = in_this_process
    torch.multiprocessing.start_processes = in_this_process
    for module in filter(None, (torch.cuda, getattr(torch, "accelerator", None))):
        module.device_count = counting_ranks(module.device_count)


class Gpus(int):
    """The number of GPUs that scripts expect, one for each rank of a host; a rank modulo it is a GPU that is here."""

    here: int

    def __rmod__(self, rank: int) -> int:
        return rank % self.here


def counting_ranks(count: Any) -> Any:
    """Return a `device_count` that tells all but torch itself one GPU for each rank of the host."""

    def device_count() -> int:
        here = count()
        of_ranks = Gpus(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        of_ranks.here = here
        is_torch = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] == "torch"
        return here if is_torch or not 0 < here < of_ranks else of_ranks

    return device_count


def in_this_process(
    function: Any, args: Any = (), nprocs: Any = 1, join: Any = True, daemon: Any = False, start_method: Any = "spawn"
) -> None:
    """Run what `torch.multiprocessing.spawn` would run as each rank once, on the first device."""
    function(0, *args)


def refuse(watched: Any, what: str) -> None:
    """Note that the training cannot be emulated, and end it, before its own handlers go on without the ranks."""
    message = f"{what} cannot be emulated: its ranks hold different parts, or need each other's. {HELPS}"
    watched.end("error", "NotEmulated", message)
    sys.stderr.write(f"memorymark: {message}\n")
    sys.stderr.flush()
    os._exit(1)


def actions(watched: Any) -> dict[str, Any]:
    """Return what is done with modules after their import."""

    def refuses(name: str, what: str) -> Any:
        def replace(module: Any) -> None:
            *owners, last = name.split(".")
            owner = getattr(module, owners[0], None) if owners else module
            if owner is not None and hasattr(owner, last):
                setattr(owner, last, lambda *_, **__: refuse(watched, what))

        return replace

    found = {module: refuses(name, what) for module, (name, what) in REFUSED.items()}
    return {**found, LAUNCHER: lambda module: replace_launcher(watched, module)}


def replace_launcher(watched: Any, module: Any) -> None:
    """Make the launcher of torchrun, `torch.distributed.run` and `accelerate launch` become the rank itself."""

    def launched(launcher: Any, *arguments: Any) -> Any:
        config, program = launcher._config, launcher._entrypoint
        rank, size = (watched.settings["emulated"][name] for name in ("rank", "size"))
        on_host = config.nproc_per_node
        if 1 < on_host < size and size % on_host == 0:
            of_hosts = {"GROUP_RANK": rank // on_host, "GROUP_WORLD_SIZE": size // on_host}
            os.environ |= {name: str(value) for name, value in {**of_hosts, "LOCAL_WORLD_SIZE": on_host}.items()}
        elif on_host > size:
            refuse(watched, f"--nproc-per-node {on_host} of {size} ranks")
        if not isinstance(program, str):
            return {0: program(*arguments)}
        sys.stdout.flush()
        sys.stderr.flush()
        os.execvp(program, [program, *arguments])  # noqa: S606 - what the launcher would have started

    module.elastic_launch.__call__ = launched
