"""What LoRA trains and QLoRA stores: the options of peft and bitsandbytes. Loads neither.

The measurement makes models with them and the code to paste writes them, so that both are the same training.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from .adapter_settings import AUTO, PLAIN, AdapterSettings
from .catalog import Workload
from .lora_targets import ALL_LINEAR, target_modules

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
TRAINED_HEADS = ["classifier", "score"]
"""What peft trains as a whole where texts are classified: transformers would quantise it, and then it cannot be."""


class FourBits(NamedTuple):
    """How weights of 4 bits are stored, and torch's name of the dtype in which their layers compute."""

    quant_type: str
    is_double: bool
    compute_dtype: str
    with_output_layer: bool

    @classmethod
    def of(cls, settings: AdapterSettings, precision: str) -> Self:
        quant_type, _, double = settings.four_bit_format.partition("-")
        computes_in = settings.four_bit_compute
        if computes_in == AUTO:
            computes_in = "fp16" if precision == "fp16" else "bf16"
        return cls(quant_type, bool(double), _DTYPES[computes_in], settings.four_bit_output_layer)


OUTLIER_THRESHOLD = 6.0
"""The absolute value from which on LLM.int8 multiplies a column in 16 bits: the default of transformers."""


def lora_options(settings: AdapterSettings, workload: Workload) -> dict[str, Any]:
    """Return the arguments of peft's LoraConfig; a classifier's new head is trained as a whole, without adapter."""
    rank = settings.lora_rank or 1
    targets = target_modules(settings.lora_targets, workload)
    options: dict[str, Any] = {"r": rank, "lora_alpha": 2 * rank, "target_modules": targets}
    if settings.lora_dropout:
        options["lora_dropout"] = settings.lora_dropout
    if settings.lora_variant != PLAIN:
        options[f"use_{settings.lora_variant}"] = True
    if workload.task == "text-classification":
        options["task_type"] = "SEQ_CLS"
    if workload.task == "image-classification" and settings.lora_targets != ALL_LINEAR:
        options["modules_to_save"] = ["classifier"]
    if workload.model_class.startswith("DistilBert"):
        # its head has two layers, and peft learns both as a whole because of the end of their names
        options["exclude_modules"] = ["pre_classifier"]
    return options


def is_trained_whole(path: str, options: dict[str, Any]) -> bool:
    """Whether peft trains this module of a model without an adapter, or in no adapter: the head of a classifier."""
    heads = TRAINED_HEADS if options.get("task_type") == "SEQ_CLS" else options.get("modules_to_save", [])
    return any(part in (*heads, *options.get("exclude_modules", ())) for part in path.split("."))
