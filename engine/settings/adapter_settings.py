"""What is trained in place of all weights: adapters, on frozen weights that may be quantised."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields

from ..errors import SpecError
from .lora_targets import ALL_LINEAR, NAMES, TARGETS, names_in_order
from .setting import Role, setting


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters, and how the frozen weights under them are stored."""

    lora_rank: int | None = setting(
        Role.TRAINING,
        "LoRA rank",
        "Train LoRA adapters of this rank only. "
        "Adapters of peft; their alpha changes neither memory nor speed. Left out: all weights are trained.",
        default=None,
        hint="With a rank, only small adapters and a new head are trained. Empty: all weights are.",
        bounds=(1, 1024),
        metavar="N",
    )
    lora_targets: str = setting(
        Role.TRAINING,
        "LoRA targets",
        "Linear layers that get a LoRA adapter. "
        "attention and query-value are found by the model's own names; a layer that makes query, key and value at once "
        "is taken whole. Or names of layers joined by commas, such as q_proj,v_proj.",
        default=ALL_LINEAR,
        hint="Fewer adapters keep fewer activations. Or names of layers: q_proj,v_proj.",
        choices=TARGETS,
        text_values=NAMES,
    )
    lora_dropout: float = setting(
        Role.TRAINING,
        "LoRA dropout",
        "Share of an adapter's inputs that dropout sets to zero, from 0 to 0.9. "
        "Above 0, each adapter keeps a copy of its inputs and a mask.",
        default=0.0,
        hint="Above 0, each adapter keeps a copy of its inputs and a mask. 0: none.",
        bounds=(0, 0.9),
        metavar="SHARE",
    )
    load_in_4bit: bool = setting(
        Role.TRAINING,
        "4-bit base weights",
        "Keep the frozen base weights in 4 bits (QLoRA). bitsandbytes, NF4, double quantization.",
        default=False,
        hint="Known as QLoRA. Needs a LoRA rank and bitsandbytes. Computes in bf16, or in fp16 with that precision.",
    )

    def take_lora_targets(self) -> None:
        """Replace a list of names by the same names in order. It is called before the settings are checked."""
        if isinstance(self.lora_targets, str):
            object.__setattr__(self, "lora_targets", names_in_order(self.lora_targets))


OF_ADAPTERS = ("lora_targets", "lora_dropout")
"""The settings that describe adapters, and mean nothing without a rank."""


def check_adapters(settings: AdapterSettings) -> None:
    """Raise SpecError for a setting of adapters where none are trained."""
    if settings.lora_rank is not None:
        return
    defaults = {each.name: each.default for each in fields(AdapterSettings) if each.default is not MISSING}
    for name in OF_ADAPTERS:
        if getattr(settings, name) != defaults[name]:
            raise SpecError(name, "needs a LoRA rank: without one no adapters are trained")
