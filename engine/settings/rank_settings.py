"""How many GPUs train together, one rank on each, and what they share. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ..ranks.emulation import MOST_BYTES, EmulatedRank
from .setting import Role, setting

DDP, FSDP, ZERO1 = "ddp", "fsdp", "zero1"
OF_SEVERAL_GPUS = ("ranks", "strategy")
"""The settings of a training on several GPUs."""
STRATEGIES = {
    "": "none (one GPU)",
    DDP: "DDP (each GPU holds everything, gradients also in buckets)",
    FSDP: "FSDP2 (weights, gradients and optimizer state sharded, by layer)",
    ZERO1: "ZeRO-1 (DDP with sharded optimizer state)",
}


@dataclass(frozen=True)
class RankSettings:
    """The ranks of a training, each on a GPU of its own."""

    ranks: int = setting(
        Role.TRAINING,
        "GPUs",
        "GPUs that train together, one rank on each. The batch size is that of one GPU. "
        "A portal estimates them; the command line measures those of its host, with `--device cpu` by gloo.",
        default=1,
        hint="Estimated here, measured on the command line. The batch size is that of one GPU: the global one is GPUs "
        "times as large.",
        bounds=(1, 1024),
        metavar="N",
    )
    strategy: str = setting(
        Role.TRAINING,
        "Strategy",
        "What several GPUs share. Their memory is that of rank 0, with gloo's or NCCL's transfers left out. "
        "bf16 with fsdp is its own mixed precision: weights gathered in bf16, gradients reduced in fp32.",
        default="",
        hint="With 2 or more GPUs.",
        choices=STRATEGIES,
    )
    communication_bytes: int | None = setting(
        Role.ASSUMPTION,
        "Memory of the communication library",
        "Memory of NCCL outside the allocator, on each of several GPUs, such as 500MiB. "
        "Left out: as read on A100 (NVIDIA/nccl#964).",
        default=None,
        bounds=(0, MOST_BYTES),
        option="--communication-memory",
        metavar="SIZE",
        is_in_form=False,
    )

    @property
    def emulated_ranks(self) -> tuple[EmulatedRank, ...]:
        """None: ranks are emulated by starts, and those have a spec of their own."""
        return ()
