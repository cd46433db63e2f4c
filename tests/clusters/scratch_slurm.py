"""Slurm's own daemons on one machine, from Debian's packages, for the time of a test: munged, slurmctld and slurmd.

The node has a "card" that is a name alone: its device file is /dev/null.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scancel")
START_SECONDS = 60


def is_installed() -> bool:
    """Whether the daemons are here, and may be started: slurmd needs root."""
    return os.geteuid() == 0 and all(shutil.which(name) for name in NEEDED)


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster of one node; its environment. All daemons end with the test."""
    conf = _configure(folder)
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    commands = [
        [
            *("munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket"),
            *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"),
        ],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D"],
    ]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "daemons.log").open("wb") as log:
            for command in commands:
                daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        with suppress(subprocess.SubprocessError):
            subprocess.run(["scancel", "--user=root"], env=environment, timeout=10, check=False)
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _configure(folder: Path) -> Path:
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname()
    (folder / "gres.conf").write_text("Name=gpu Type=tesla_t4 File=/dev/null\n")
    conf = folder / "slurm.conf"
    conf.write_text(f"""ClusterName=scratch
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort={_free_port()}
SlurmdPort={_free_port()}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_min_interval=0
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4096 Gres=gpu:tesla_t4:1 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
    return conf


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    until = time.monotonic() + START_SECONDS
    state = ""
    while time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            found = subprocess.run(
                ["sinfo", "--noheader", "--format=%t"],
                env=environment,
                timeout=10,
                capture_output=True,
                text=True,
                check=False,
            )
            state = found.stdout.strip()
        if state == "idle":
            return
        time.sleep(0.5)
    log = (folder / "daemons.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"the node is {state or 'not known'}, not idle:\n{log}")
