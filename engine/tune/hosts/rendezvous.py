"""PURE: on how many hosts a command trains, and where they meet, by the options of its torchrun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath

from ...errors import SpecError
from ...program import PROGRAM
from ...ranks.emulation import hosts_named

LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
STATIC, C10D = "static", "c10d"
PORTS = {STATIC: 29_500, C10D: 29_400}
"""torchrun's own, where its command names none."""
OF_ONE_HOST = ("node-rank", "local-addr", "master-addr", "rdzv-endpoint", "rdzv-conf")
"""Options of torchrun that may differ from host to host."""
MOST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How many hosts train, and where they meet. `host` is this one's number; None: who has the address decides."""

    hosts: int
    address: str
    port: int
    host: int | None

    @property
    def place(self) -> str:
        return f"{self.address}:{self.port}"


def rendezvous_of(command: Sequence[str], environment: Mapping[str, str], port: int | None = None) -> Rendezvous | None:
    """Return where the hosts of a command meet; None where it trains on one. Raises SpecError, naming what cannot be.

    torchrun also reads its options from the environment: `PET_NNODES` for `--nnodes`, as in Kubernetes.
    """
    at = _launcher_at(command)
    _check_unscheduled(command if at is None else command[:at])
    if at is None:
        if (named := hosts_named(command)) is not None:
            raise SpecError("command", f"{named}: several hosts are measured with torchrun --nnodes")
        return None
    options = _options(command[at + 1 :], environment)
    hosts = _hosts(options.get("nnodes", "1"))
    if hosts is None or hosts == 1:
        return None
    _check(options, hosts)
    backend = options.get("rdzv-backend", STATIC)
    is_static = backend == STATIC and "rdzv-endpoint" not in options
    address = options.get("master-addr", "127.0.0.1") if is_static else options.get("rdzv-endpoint", "")
    address, _, after = address.rpartition(":") if not is_static and ":" in address else (address, "", "")
    if not address:
        raise SpecError("command", f"--rdzv-backend {backend} on {hosts} hosts needs --rdzv-endpoint HOST:PORT")
    theirs = _whole(options.get("master-port") if is_static else after or None, "its port", PORTS[backend], MOST_PORT)
    host = _whole(options.get("node-rank"), "--node-rank", 0, hosts - 1) if backend == STATIC else None
    return Rendezvous(hosts, address.strip("[]"), port or min(theirs + 1, MOST_PORT), host)


def same_everywhere(command: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a command that are the same on every host.

    >>> same_everywhere(["torchrun", "--nnodes=2", "--node-rank", "1", "train.py", "--node-rank", "1"])
    ('torchrun', '--nnodes=2', 'train.py', '--node-rank', '1')
    """
    at = _launcher_at(command)
    if at is None:
        return tuple(command)
    end = at + 1 + _script_at(command[at + 1 :])
    kept: list[str] = []
    is_value = False
    for part in command[at + 1 : end]:
        is_own = _name(part) in OF_ONE_HOST
        if not is_own and not is_value:
            kept.append(part)
        is_value = is_own and "=" not in part
    return (*command[: at + 1], *kept, *command[end:])


def _launcher_at(command: Sequence[str]) -> int | None:
    return next((n for n, part in enumerate(command) if PurePath(part).name in LAUNCHERS), None)


def _script_at(parts: Sequence[str]) -> int:
    """Return where the script begins behind the launcher: options after that are its own."""
    is_script = (n for n, part in enumerate(parts) if part.endswith(".py") or part in ("-m", "--module"))
    return next(is_script, len(parts))


def _name(part: str) -> str:
    """Return the name of an option: torchrun takes `--node_rank` for `--node-rank`."""
    return part.partition("=")[0].removeprefix("--").replace("_", "-") if part.startswith("--") else ""


def _options(parts: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return torchrun's options with their values; of one without a value, what stands behind it."""
    given = {
        name.removeprefix("PET_").lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PET_") and value
    }
    own = parts[: _script_at(parts)]
    for part, after in zip_longest(own, own[1:], fillvalue=""):
        if name := _name(part):
            given[name] = part.partition("=")[2] if "=" in part else after
    return given


def _hosts(nnodes: str) -> int | None:
    """Return the number of hosts; None where it is none, which torchrun itself says. Raises SpecError for a range."""
    least, _, most = nnodes.partition(":")
    if most and least != most:
        raise SpecError("command", f"--nnodes {nnodes} lets hosts come and go, and a size has to hold on all of them")
    return int(least) if least.isdigit() else None


def _check_unscheduled(before: Sequence[str]) -> None:
    """Raise SpecError where Slurm would start the processes: they would not end with their start, nor be watched."""
    if before and PurePath(before[0]).name == "srun":
        line = f'srun --ntasks-per-node 1 {PROGRAM} tune -- torchrun --nnodes "$SLURM_NNODES" ...'
        raise SpecError("command", f"srun starts processes that nobody watches: put it in front: {line}")


def _check(options: Mapping[str, str], hosts: int) -> None:
    """Raise SpecError where the starts of several hosts could not be watched, each by a watcher of its own."""
    if "standalone" in options:
        raise SpecError("command", f"--standalone is one host's: leave it out with --nnodes {hosts}")
    if options.get("max-restarts", "0") != "0":
        raise SpecError("command", "--max-restarts starts failed ranks again within one start: leave it out")
    backend = options.get("rdzv-backend", STATIC)
    if backend not in PORTS:
        raise SpecError("command", f"--rdzv-backend {backend} keeps what earlier starts left: use {C10D}")


def _whole(text: str | None, name: str, otherwise: int, most: int) -> int:
    if text is None:
        return otherwise
    if not text.isdigit() or int(text) > most:
        raise SpecError("command", f"{name} is {text[:80]!r}, and must be a whole number up to {most:,}")
    return int(text)
