"""PURE: the lines that request a card from a scheduler, for `fit --as slurm` and `fit --as k8s`.

Names of cards differ between clusters. The default is the name that the scheduler's own detection derives from the
driver's name: Slurm with AutoDetect=nvml writes it in lower case with underscores, and the GPU feature discovery of
Kubernetes with hyphens. Each request says how to check it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..estimate.mig import MigSlice
from ..text.units import GIB, format_bytes

SLURM, KUBERNETES = "slurm", "k8s"
NVIDIA = "nvidia"


@dataclass(frozen=True, slots=True)
class CardChoice:
    """The recommended card: its `driver_names`, the answer's `basis` in a sentence, the Slurm `type_name` if given.

    `host_bytes` is None where as much host memory is assumed as the cards have.
    """

    vendor: str
    driver_names: tuple[str, ...]
    total_bytes: int
    basis: str
    host_bytes: int | None = None
    slice: MigSlice | None = None
    type_name: str | None = None
    count: int = 1

    @property
    def host_gib(self) -> int:
        return -(-(self.host_bytes or self.count * self.total_bytes) // GIB)


def request_lines(choice: CardChoice, scheduler: str) -> list[str]:
    return (_slurm if scheduler == SLURM else _kubernetes)(choice)


def _slurm(choice: CardChoice) -> list[str]:
    lines = [f"# {choice.basis}"]
    name = choice.type_name
    if name is None and choice.vendor == NVIDIA and choice.driver_names:
        name = choice.driver_names[0].lower().replace(" ", "_")  # as Slurm's detection writes it
    if name is None:
        lines += ["# The cluster's name for this GPU is not known: any GPU is requested. Check: sinfo -o %G"]
    elif choice.type_name is None:
        lines += ["# Named as AutoDetect=nvml names it; your cluster may use another name. Check: sinfo -o %G"]
    lines += _assumed_host_memory(choice, "--mem")
    lines += [f"#SBATCH --gres=gpu:{f'{name}:' if name else ''}{choice.count}"]
    lines += [f"#SBATCH --mem={choice.host_gib}G"]
    if choice.count > 1:
        lines += [
            "#SBATCH --nodes=1",
            "#SBATCH --ntasks=1",
            f"# One node must have all {choice.count}: sinfo -o %G. One task starts a rank on each of them.",
            "# Without --cpus-per-gpu all ranks share one CPU.",
            f"# srun torchrun --standalone --nproc-per-node {choice.count} train.py",
        ]
    if choice.slice is not None:
        lines += [
            f"# {_describe_slice(choice.slice)} Instead of the line with --gres:",
            f"# #SBATCH --gres=gpu:{name}_{choice.slice.profile}:1",
        ]
    return lines


def _kubernetes(choice: CardChoice) -> list[str]:
    product = choice.driver_names[0].replace(" ", "-") if choice.driver_names and choice.vendor == NVIDIA else None
    lines = [f"# {choice.basis}"]
    if product:
        lines += ["# Check the label: kubectl get nodes -L nvidia.com/gpu.product"]
        if others := [name.replace(" ", "-") for name in choice.driver_names[1:]]:
            lines += [f"# Other names of this GPU: {', '.join(others)}"]
    else:
        lines += ["# The label of this GPU is not known: any GPU is requested. Check: kubectl get nodes --show-labels"]
    lines += _assumed_host_memory(choice, "memory")
    if choice.slice is not None:
        lines += [
            f"# {_describe_slice(choice.slice)} Instead of {choice.vendor}.com/gpu, with the MIG strategy “mixed”:",
            f"#   nvidia.com/mig-{choice.slice.profile}: 1",
        ]
    lines += ["spec:"]
    if product:
        lines += ["  nodeSelector:", f"    nvidia.com/gpu.product: {product}"]
    return [
        *lines,
        "  containers:",
        "    - name: training",
        "      resources:",
        "        requests:",
        f"          memory: {choice.host_gib}Gi",
        "        limits:",
        f"          {choice.vendor}.com/gpu: {choice.count}",
    ]


def _describe_slice(part: MigSlice) -> str:
    return f"A MIG slice {part.profile} is enough: it has at least {format_bytes(part.usable_bytes)}."


def _assumed_host_memory(choice: CardChoice, option: str) -> list[str]:
    if choice.host_bytes is not None:
        return []
    whose = "GPU has" if choice.count == 1 else "GPUs have together"
    return [f"# {option} is an assumption: as much host memory as the {whose}. --host-memory SIZE changes it."]
