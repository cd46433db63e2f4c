"""How many GPUs train together, one rank on each, and what they share. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SpecError
from .ranks.emulation import FEWEST_RANKS, MOST_BYTES, EmulatedRank
from .setting import Role, setting, training_setting
from .spec_checks import settings_of

DDP, FSDP, ZERO1 = "ddp", "fsdp", "zero1"
RANKS_MOST = 1024
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
    ranks: int = training_setting(
        "GPUs",
        "GPUs that train together, one rank on each. The batch size is that of one GPU. "
        "Measured on GPUs of one host, on a CPU by gloo; estimates take any number.",
        default=1,
        hint="Ranks, one on each GPU of a host; on a CPU they share it. The batch size is that of one rank.",
        bounds=(1, RANKS_MOST),
    )
    strategy: str = training_setting(
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
        bounds=(0, MOST_BYTES),
        option="--communication-memory",
        is_in_form=False,
    )

    @property
    def emulated_ranks(self) -> tuple[EmulatedRank, ...]:
        """Return none: ranks are emulated by starts, which have a spec of their own."""
        return ()


@dataclass(frozen=True, slots=True)
class RankStarts:
    """How ranks are measured: own starts or one device for all, speeds compared or not. Raises SpecError."""

    emulate_ranks: int | None = setting(
        Role.LIMIT,
        "Emulated ranks",
        "One device stands in for ranks of N: memory only. Left out: every rank trains on a device of its own.",
        hint="One device stands in for ranks of so many: memory, no speed. Empty: a device for each.",
        bounds=(FEWEST_RANKS, RANKS_MOST),
    )
    rank: tuple[int, ...] | None = setting(
        Role.LIMIT,
        "Ranks to stand in for",
        "Ranks to stand in for. Left out: 0, 1 and the last.",
        hint="Such as 0,1,7. Empty: 0, 1 and the last.",
        metavar="R[,R...]",
    )
    compare_speed: bool | None = setting(
        Role.LIMIT,
        "Compare speeds",
        "Compare speeds, of starts by 12 to 24 more; without that no size is recommended. Left out: yes.",
        hint="Without it, only the limit is found, and no size is recommended.",
    )

    def __post_init__(self) -> None:
        if self.rank is not None and not isinstance(self.rank, (list, tuple)):
            raise SpecError("rank", "must be a list of ranks, such as [0, 1, 7]")
        check_compares(self.compare_speed is None or self.compare_speed)
        number, (least, most) = self.emulate_ranks, OF_STARTS["emulate_ranks"].bounds or (0, 0)
        if number is not None and not (type(number) is int and least <= number <= most):
            raise SpecError("emulate_ranks", f"must be a whole number from {least} to {most:,}")


def check_compares(compare_speed: object) -> None:
    """Raise SpecError where the member says neither yes nor no."""
    if not isinstance(compare_speed, bool):
        raise SpecError("compare_speed", "must be true or false")


OF_STARTS = settings_of(RankStarts)
"""What a request of a measurement may hold beside the training, by name."""
