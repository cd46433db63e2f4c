"""What is trained in place of all weights: adapters, on frozen weights that may be quantised."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import SpecError
from .lora_targets import ALL_LINEAR, NAMES, TARGETS, names_in_order
from .setting import training_setting

PLAIN, RSLORA, DORA = "plain", "rslora", "dora"
LORA_VARIANTS = {
    PLAIN: "LoRA",
    RSLORA: "RSLoRA (another scale; the same memory)",
    DORA: "DoRA (magnitudes too; takes more memory)",
}
FP32, BF16 = "fp32", "bf16"
LORA_WEIGHTS = {FP32: "fp32", BF16: "bf16, the model's own type (with pure bf16)"}
AUTO, DOUBLE, NF4_DOUBLE = "auto", "-dq", "nf4-dq"
FOUR_BIT_FORMATS = {
    NF4_DOUBLE: "NF4 with double quantisation",
    "nf4": "NF4",
    "fp4-dq": "FP4 with double quantisation",
    "fp4": "FP4",
}
FOUR_BIT_COMPUTE = {AUTO: "bf16, or fp16 with that precision", "bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}


@dataclass(frozen=True)
class AdapterSettings:
    lora_rank: int | None = training_setting(
        "LoRA rank",
        "Train LoRA adapters of this rank only. "
        "Adapters of peft; their alpha changes neither memory nor speed. Left out: all weights are trained.",
        hint="With a rank, only small adapters and a new head are trained. Empty: all weights are.",
        bounds=(1, 1024),
    )
    lora_targets: str = training_setting(
        "LoRA targets",
        "Linear layers that get a LoRA adapter. "
        "attention and query-value are found by the model's own names; a layer that makes query, key and value at once "
        "is taken whole. Or names of layers joined by commas, such as q_proj,v_proj.",
        default=ALL_LINEAR,
        hint="Fewer adapters keep fewer activations. Or names of layers: q_proj,v_proj.",
        choices=TARGETS,
        text_values=NAMES,
    )
    lora_dropout: float = training_setting(
        "LoRA dropout",
        "Share of an adapter's inputs that dropout sets to zero, from 0 to 0.9. "
        "Above 0, each adapter keeps a copy of its inputs and a mask.",
        default=0.0,
        hint="Above 0, each adapter keeps a copy of its inputs and a mask. 0: none.",
        bounds=(0, 0.9),
        metavar="SHARE",
    )
    lora_variant: str = training_setting(
        "LoRA variant",
        "Kind of LoRA. RSLoRA scales the adapters otherwise, at the same memory and speed. DoRA makes the whole weight "
        "of each layer in each step, also from 4 bits, to learn its magnitude too.",
        default=PLAIN,
        choices=LORA_VARIANTS,
    )
    lora_weights: str = training_setting(
        "LoRA weights",
        "Type of the adapters' weights: fp32, as peft makes them, or bf16, the model's own with pure bf16.",
        default=FP32,
        choices=LORA_WEIGHTS,
    )
    load_in_4bit: bool = training_setting(
        "4-bit base weights",
        "Keep the frozen base weights in 4 bits (QLoRA). bitsandbytes, NF4, double quantization.",
        default=False,
        hint="Known as QLoRA. Needs a LoRA rank and bitsandbytes. Computes in bf16, or in fp16 with that precision.",
    )
    load_in_8bit: bool = training_setting(
        "8-bit base weights",
        "Keep the frozen base weights in 8 bits (LLM.int8). bitsandbytes, outliers from 6.0 on in 16 bits.",
        default=False,
        hint="Known as LLM.int8. Needs a LoRA rank and bitsandbytes. Measured only, not estimated.",
    )
    four_bit_format: str = training_setting(
        "4-bit format",
        "Format of the 4-bit base weights. With double quantisation (dq) the scales are in 8 bits. "
        "Without it, a weight takes 4.5 bits in place of 4.13.",
        default=NF4_DOUBLE,
        choices=FOUR_BIT_FORMATS,
        option="--4bit-format",
    )
    four_bit_compute: str = training_setting(
        "4-bit compute type",
        "Type in which layers of 4 bits compute, and to which their weights are converted. "
        "auto is bf16, and fp16 with that precision. transformers takes fp32 where no type is given.",
        default=AUTO,
        choices=FOUR_BIT_COMPUTE,
        option="--4bit-compute",
    )
    four_bit_output_layer: bool = training_setting(
        "4-bit output layer",
        "Keep the output layer of a language model in 4 bits too, as litgpt does. Embeddings stay as they are.",
        default=False,
        option="--4bit-output-layer",
    )

    @property
    def is_quantized(self) -> bool:
        return self.load_in_4bit or self.load_in_8bit

    def take_lora_targets(self) -> None:
        """Put a list of names in order, before the settings are checked."""
        if isinstance(self.lora_targets, str):
            object.__setattr__(self, "lora_targets", names_in_order(self.lora_targets))


NEEDED = {
    "lora_rank": ("lora_targets", "lora_dropout", "lora_variant", "lora_weights", "load_in_4bit", "load_in_8bit"),
    "load_in_4bit": ("four_bit_format", "four_bit_compute", "four_bit_output_layer"),
}
"""The settings that mean nothing without another one."""
_WITHOUT = {
    "lora_rank": "needs a LoRA rank: without one no adapters are trained",
    "load_in_4bit": "needs 4-bit base weights",
}


def check_adapters(settings: AdapterSettings) -> None:
    """Raise SpecError for settings of adapters or 4 bits without adapters or 4 bits, and for weights stored twice."""
    if settings.load_in_4bit and settings.load_in_8bit:
        raise SpecError("load_in_8bit", "weights are stored once, in 4 bits or in 8; leave one out")
    defaults = {each.name: each.default for each in fields(AdapterSettings)}
    for needed, names in NEEDED.items():
        if getattr(settings, needed) != defaults[needed]:
            continue
        for name in names:
            if getattr(settings, name) != defaults[name]:
                raise SpecError(name, _WITHOUT[needed])
