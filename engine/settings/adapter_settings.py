"""What is trained in place of all weights: adapters, on frozen weights that may be quantised."""

from __future__ import annotations

from dataclasses import dataclass

from .setting import Role, setting


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters, and how the frozen weights under them are stored."""

    lora_rank: int | None = setting(
        Role.TRAINING,
        "LoRA rank",
        "Train LoRA adapters of this rank only. "
        "Every linear layer gets an adapter (peft). Left out: all weights are trained.",
        default=None,
        hint="With a rank, only small adapters and a new head are trained. Empty: all weights are.",
        bounds=(1, 1024),
        metavar="N",
    )
    load_in_4bit: bool = setting(
        Role.TRAINING,
        "4-bit base weights",
        "Keep the frozen base weights in 4 bits (QLoRA). bitsandbytes, NF4, double quantization.",
        default=False,
        hint="Known as QLoRA. Needs a LoRA rank and bitsandbytes. Computes in bf16, or in fp16 with that precision.",
    )
