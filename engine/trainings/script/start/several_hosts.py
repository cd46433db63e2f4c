"""PURE: whether a launcher would train on several hosts, by its options: only ranks of one host are measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath

from ....errors import SpecError
from ....program import PROGRAM

LAUNCHERS = (
    *("torchrun", "torch.distributed.run", "torch.distributed.launch"),
    *("accelerate", "accelerate-launch", "accelerate.commands.launch"),
)
NUMBER = re.compile("[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class SeveralHosts:
    """`named` is what says so, as "--nnodes 2"; `ranks` are those of all hosts, None where they are not known."""

    named: str
    ranks: int | None


def several_hosts(command: Sequence[str], environment: Mapping[str, str] | None = None) -> SeveralHosts | None:
    """Return what says that a command trains on several hosts; None where it is one. Options of the script do not.

    torchrun also reads its options from the environment: `PET_NNODES` for `--nnodes`, as in Kubernetes.

    >>> several_hosts(["torchrun", "--nnodes=2", "--nproc-per-node", "8", "train.py"])
    SeveralHosts(named='--nnodes 2', ranks=16)
    """
    launcher = next((n for n, part in enumerate(command) if PurePath(part).name in LAUNCHERS), None)
    if launcher is None:
        return None
    options = _options(command[launcher + 1 :], environment or {})
    named, value = options.get("nnodes") or options.get("num_machines") or ("", "1")
    least, _, most = value.partition(":")
    hosts = most or least
    if not NUMBER.fullmatch(hosts) or int(hosts) <= 1:
        return None
    if "nnodes" in options:
        times, (_, ranks) = int(hosts), options.get("nproc_per_node", ("", "1"))
    else:
        times, (_, ranks) = 1, options.get("num_processes", ("", "N"))
    is_known = least == hosts and NUMBER.fullmatch(ranks)
    return SeveralHosts(named, times * int(ranks) if is_known else None)


def check_one_host(command: Sequence[str], environment: Mapping[str, str], *, is_emulated: bool = False) -> None:
    """Raise SpecError for ranks of several hosts, unless they are emulated, and for those that Slurm would start."""
    if command and PurePath(command[0]).name == "srun":
        line = f"srun --nodes 1 --ntasks 1 {PROGRAM} tune -- ..."
        raise SpecError("command", f"srun starts processes that nobody watches: put it in front: {line}")
    if is_emulated or (hosts := several_hosts(command, environment)) is None:
        return
    line = f"{PROGRAM} tune --emulate-ranks {hosts.ranks or 'N'} -- {PurePath(command[0]).name} ..."
    raise SpecError(
        "command", f"{hosts.named}: several hosts are not measured; for their memory one GPU is enough: {line}"
    )


def _options(parts: Sequence[str], environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return by its name how each option is written, and its value: torchrun takes `--node-rank` and `--node_rank`."""
    found = {
        name.removeprefix("PET_").lower(): (f"{name}={value}", value)
        for name, value in environment.items()
        if name.startswith("PET_") and value
    }
    for part, after in zip_longest(parts, parts[1:], fillvalue=""):
        if part.endswith(".py") or part in ("-m", "--module"):
            break
        if part.startswith("--"):
            name, is_joined, value = part.partition("=")
            value = value if is_joined else after
            found[name.removeprefix("--").replace("-", "_")] = (f"{name} {value}", value)
    return found
