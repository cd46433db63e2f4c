"""What LoRA trains and QLoRA stores: the options of peft and bitsandbytes. Loads neither.

The measurement makes models with them and the code to paste writes them, so that both are the same training.
"""

from __future__ import annotations

from typing import Any

from ..catalog import Workload

QUANTIZATION_TYPE = "nf4"
USES_DOUBLE_QUANTIZATION = True
TRAINED_HEADS = ["classifier", "score"]
"""What peft trains as a whole where texts are classified: transformers would quantise it, and then it cannot be."""


def compute_dtype(precision: str) -> str:
    """Return torch's name of the dtype in which layers of 4 bits compute."""
    return "float16" if precision == "fp16" else "bfloat16"


def lora_options(rank: int, workload: Workload) -> dict[str, Any]:
    """Return the arguments of peft's LoraConfig: all linear layers, and a classifier's new head as a whole."""
    options: dict[str, Any] = {"r": rank, "lora_alpha": 2 * rank, "target_modules": "all-linear"}
    if workload.task == "text-classification":
        options["task_type"] = "SEQ_CLS"
    if workload.model_class.startswith("DistilBert"):
        # its head has two layers, and peft learns both as a whole because of the end of their names
        options["exclude_modules"] = ["pre_classifier"]
    return options
