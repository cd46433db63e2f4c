"""PURE: the configurations of DeepSpeed and torchtitan for a training. Tests read them with the libraries' classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..settings.step_settings import FULL, PURE_BF16
from .recipe import Recipe
from .snippets import JSON, OPTIMIZER_OF_EACH, PYTHON, STEPS_AFTER_BACKWARD, NoSnippet, Snippet, common, refused

_AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}
_NOT_MEASURED = "{name} keeps buffers of its own, which were not measured here: check its first steps."


def deepspeed(recipe: Recipe) -> Snippet | NoSnippet:
    """Write DeepSpeed's configuration without ZeRO, as the training was measured, and the call that takes it."""
    title = "DeepSpeed"
    is_pure = recipe.spec.precision == PURE_BF16
    reasons: dict[str, object] = {
        "it takes weights and optimizer in bf16 alone only with ZeRO, which was not measured": is_pure,
        "its engine takes the loss that the whole model returns": recipe.loss is not None,
        "its engine was not tried with quantised weights": recipe.adapters.is_quantized,
        **common(recipe, STEPS_AFTER_BACKWARD, OPTIMIZER_OF_EACH),
    }
    if left_out := refused(title, reasons):
        return left_out
    config: dict[str, Any] = {
        "train_batch_size": recipe.global_batch_size,
        "train_micro_batch_size_per_gpu": recipe.micro_batch_size,
        "gradient_accumulation_steps": recipe.accumulation_steps,
        "zero_optimization": {"stage": 0},
    }
    if dtype := _AUTOCAST.get(recipe.spec.precision):
        config["torch_autocast"] = {"enabled": True, "dtype": dtype}
    python = [
        *recipe.yours_lines(),
        "import deepspeed",
        "import torch",
        *recipe.imports(),
        "",
        *recipe.limit_lines(),
        *recipe.precision_lines(),
        *recipe.model_lines(),
        *recipe.optimizer_lines("model.parameters()"),
        "engine, _, loader, _ = deepspeed.initialize(",
        '    model=model, optimizer=optimizer, training_data=dataset, config="deepspeed.json"',
        ")",
    ]
    note = "Save it as deepspeed.json. "
    text = json.dumps(config, indent=2)
    return Snippet("deepspeed", title, JSON, text, "\n".join(python), note + _NOT_MEASURED.format(name="DeepSpeed"))


def torchtitan(recipe: Recipe) -> Snippet | NoSnippet:
    """Write the lines for the user's function in torchtitan's `config_registry.py`."""
    title = "torchtitan"
    optimizer, rows = recipe.torch_optimizer, recipe.spec.sequences
    reasons: dict[str, object] = {
        "it trains language models": recipe.workload.task != "text-generation",
        "it has no fp16": recipe.spec.precision == "fp16",
        "adapters of peft are not its own": recipe.adapters.lora_rank is not None,
        "it has a loss of its own, which is not the one that was measured": recipe.loss is not None,
        **common(recipe, STEPS_AFTER_BACKWARD, OPTIMIZER_OF_EACH),
        "its offloading is its own, and torch's save_on_cpu was measured": recipe.spec.offload_activations,
        f"it makes full rows of its own data, and {rows} ones were measured": rows != FULL,
        f"its usual optimizers are Adam and AdamW, and {optimizer.label} was measured": (
            optimizer.class_name not in ("Adam", "AdamW")
        ),
    }
    if left_out := refused(title, reasons):
        return left_out
    dtype = "bfloat16" if recipe.spec.precision == PURE_BF16 else "float32"
    compute = "bfloat16" if recipe.spec.precision in ("bf16", PURE_BF16) else "float32"
    implementation = "fused" if recipe.torch_optimizer.options.get("fused") else "foreach"
    lines = [
        "# in your function of config_registry.py, where `config` is its Trainer.Config; learning_rate is yours",
        "from torchtitan.components.optimizer import OptimizersContainer, ParamGroupConfig",
        *(["from torchtitan.distributed.activation_checkpoint import FullAC"] if recipe.checkpoints else []),
        "",
        f"config.training.local_batch_size = {recipe.micro_batch_size}",
        f"config.training.global_batch_size = {recipe.global_batch_size}",
        f"config.training.seq_len = {recipe.input_size}",
        f'config.training.dtype = "{dtype}"',
        f'config.training.mixed_precision_param = "{compute}"',
        "weights = ParamGroupConfig(",
        f'    pattern=r".*", optimizer_name="{recipe.torch_optimizer.class_name}",',
        '    optimizer_kwargs={"lr": learning_rate},',
        ")",
        f'config.optimizer = OptimizersContainer.Config(param_groups=[weights], implementation="{implementation}")',
        f"config.activation_checkpoint = {'FullAC.Config()' if recipe.checkpoints else 'None'}",
    ]
    accumulation = f"It accumulates {recipe.accumulation_steps} micro-batches a step on {recipe.devices} device(s). "
    own = "torchtitan trains its own model of this kind, so its memory is another than what was measured here."
    return Snippet("torchtitan", title, PYTHON, "\n".join(lines), note=accumulation + own)


WRITERS: Sequence[Callable[[Recipe], Snippet | NoSnippet]] = (deepspeed, torchtitan)
