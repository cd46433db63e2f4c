"""PURE: facts about a scheduler, a container and control groups, from the variables and files that state them.

A fact that is not stated is left out: nothing is guessed. Slurm's variables are those of sbatch(1) and srun(1), the
files of control groups those of the kernel's cgroup-v1 and cgroup-v2 documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

Facts = dict[str, str | int | float]

OF_ONE_RUN = (
    *("run_key", "started_at", "slurm_job_id", "slurm_array_job_id", "slurm_array_task_id", "slurm_node"),
    *("container_id", "kubernetes_pod_uid"),
)
"""Facts that differ with each run and change no figure: comparisons of environments leave them out."""

_TEXT_MOST = 300
_SLURM_TEXTS = {
    "slurm_job_id": "SLURM_JOB_ID",
    "slurm_array_job_id": "SLURM_ARRAY_JOB_ID",
    "slurm_array_task_id": "SLURM_ARRAY_TASK_ID",
    "slurm_cluster": "SLURM_CLUSTER_NAME",
    "slurm_partition": "SLURM_JOB_PARTITION",
    "slurm_node": "SLURMD_NODENAME",
    "slurm_cpus_per_task": "SLURM_CPUS_PER_TASK",
}
_SLURM_SIZES = {
    "slurm_memory_per_node_bytes": "SLURM_MEM_PER_NODE",
    "slurm_memory_per_cpu_bytes": "SLURM_MEM_PER_CPU",
    "slurm_memory_per_gpu_bytes": "SLURM_MEM_PER_GPU",
}
_SIZE = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
_UNITS = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # a number without a unit is in MiB
_IMAGE_VARIABLES = ("MEMORYMARK_CONTAINER_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ID = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?$")
_POD = re.compile(r"[/-]pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?(?:/|$)")
_MOUNTED_BY_ENGINE = re.compile(r"/(?:overlay-)?containers/([0-9a-f]{64})/")
_UNLIMITED_FROM = 1 << 60  # cgroup v1 writes "no limit" as the largest multiple of a page


OF_A_RUN = (
    *OF_ONE_RUN,
    *(name for name in (*_SLURM_TEXTS, *_SLURM_SIZES) if name not in OF_ONE_RUN),
    *("container_image", "container_image_digest", "cgroup_memory_limit_bytes", "cgroup_cpu_cores"),
)
"""All circumstances of a run's start except its host. A run may be resumed in another job, as long as the device, its
memory and the versions are the same."""


def slurm_facts(environ: Mapping[str, str]) -> Facts:
    """Return the job's identity and its requested resources; empty outside a job."""
    facts: Facts = {name: text for name, variable in _SLURM_TEXTS.items() if (text := _text(environ, variable))}
    sizes = {name: parse_size(environ.get(variable, "")) for name, variable in _SLURM_SIZES.items()}
    return facts | {name: size for name, size in sizes.items() if size}  # 0 means all memory of the node


def parse_size(text: str) -> int | None:
    """Read a size as Slurm writes it: ``64000`` is in MiB, ``16G`` in GiB."""
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2].upper()] if match else None


def container_facts(environ: Mapping[str, str], cgroup: str, mountinfo: str, containerenv: str) -> Facts:
    """Return the image, its digest and the container's id, as stated; `cgroup` and `mountinfo` are of /proc/self."""
    podman = dict(re.findall(r'^(\w+)="(.*)"$', containerenv, re.MULTILINE))
    image = next((text for name in _IMAGE_VARIABLES if (text := _text(environ, name))), podman.get("image", ""))
    digest, pod = _DIGEST.search(image), _POD.search(cgroup.replace("\n", "/\n"))
    found = {
        "container_image": image[:_TEXT_MOST],
        "container_image_digest": digest[0] if digest else "",
        "container_id": container_id(cgroup, mountinfo) or podman.get("id", ""),
        "kubernetes_pod_uid": pod[1].replace("_", "-") if pod else "",  # systemd writes _ for -
    }
    return {name: text for name, text in found.items() if text}


def container_id(cgroup: str, mountinfo: str) -> str | None:
    """Return the id of Docker, containerd or Podman; None outside a container, or where nothing shows it.

    In a cgroup namespace mounted files show it: only /etc/hostname, as a host lists its containers' mounts too.
    """
    for line in cgroup.splitlines():
        if found := _ID.search(line.rpartition(":")[2]):
            return found[1]
    for fields in (line.split() for line in mountinfo.splitlines()):
        if len(fields) > 4 and fields[4] == "/etc/hostname" and (found := _MOUNTED_BY_ENGINE.search(fields[3])):
            return found[1]
    return None


def cgroup_folders(cgroup: str, controller: str) -> list[PurePosixPath]:
    """Return the folders below /sys/fs/cgroup that limit a process, up to the root: every ancestor's limit applies."""
    for _, controllers, path in (line.split(":", 2) for line in cgroup.splitlines() if line.count(":") >= 2):
        if controller in controllers.split(","):  # version 1: one tree for one or several controllers
            return [PurePosixPath(controllers) / each for each in _ancestors(path)]
    for line in cgroup.splitlines():
        if line.startswith("0::"):
            return _ancestors(line[3:])
    return []


def _ancestors(path: str) -> list[PurePosixPath]:
    relative = PurePosixPath(path.lstrip("/"))
    return [relative, *relative.parents] if relative.parts else [relative]


def lowest_memory_limit(texts: Iterable[str]) -> int | None:
    """Return the lowest limit of ``memory.max`` or ``memory.limit_in_bytes`` texts; None where none is set."""
    limits = [int(text) for text in map(str.strip, texts) if text.isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_FROM), default=None)


def lowest_cpu_quota(texts: Iterable[str]) -> float | None:
    """Return the fewest cores of ``cpu.max`` texts ("150000 100000", as joined for version 1); None without a limit."""
    pairs = [text.split() for text in texts]
    quotas = [(int(p[0]), int(p[1])) for p in pairs if len(p) == 2 and p[0].isdigit() and p[1].isdigit()]
    return min((quota / period for quota, period in quotas if quota and period), default=None)


def mig_profile(device_name: str) -> str | None:
    """Return ``1g.10gb`` for ``NVIDIA H100 80GB HBM3 MIG 1g.10gb``; None for a whole card."""
    return device_name.rpartition(" MIG ")[2] if " MIG " in device_name else None


def _text(environ: Mapping[str, str], variable: str) -> str:
    return environ.get(variable, "").strip()[:_TEXT_MOST]
