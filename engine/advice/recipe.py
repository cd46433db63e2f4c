"""PURE: the settings with which a training's code has the memory and the speed that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..questions.documents.stored import StoredSpec
from ..race.lines import DECODER_WITHOUT_CACHE, ENABLING_CHECKPOINTING, TF32, without_cache
from ..settings.adapter_settings import BF16, AdapterSettings
from ..settings.catalog import Workload
from ..settings.catalog.stored_workload import stored_workload
from ..settings.loop_settings import LoopSettings
from ..settings.lora_options import TRAINED_HEADS, FourBits, lora_options
from ..settings.optimizers import OPTIMIZERS, Optimizer
from ..settings.rank_settings import DDP
from ..settings.spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS
from ..settings.spec_checks import settings_of
from ..settings.step_settings import FREED, PACKED, PADDED, PURE_BF16
from ..text.units import format_bytes
from .language_model_loss import LanguageModelLoss

_WRITTEN = (
    "precision",
    "optimizer",
    *settings_of(LoopSettings),
    *settings_of(AdapterSettings),
    "accumulation_steps",
    "mode",
    "sequences",
    "pretrained",
    "gradients",
    "offload_activations",
    "offload_optimizer",
    "ranks",
)
"""The settings of a training that the code sets, or that readers have to set themselves."""
_ROWS = {
    PADDED: "padded, with an attention_mask and labels of -100 where it is 0",
    PACKED: "of several sequences, with position_ids that begin anew with each and no attention_mask",
}
"""Describes the samples of a language model, where rows are not full sequences."""
_AS_PREPARED = "of the other weights, as prepare_model_for_kbit_training casts them"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One training. `limit_bytes` is the memory limit, None for a whole card; `capacity_bytes` the card's memory."""

    workload: Workload
    spec: StoredSpec
    device_kind: str
    micro_batch_size: int
    accumulation_steps: int
    devices: int
    limit_bytes: int | None = None
    capacity_bytes: int | None = None

    @property
    def adapters(self) -> AdapterSettings:
        return AdapterSettings(**{name: getattr(self.spec, name) for name in settings_of(AdapterSettings)})

    @property
    def loop(self) -> LoopSettings:
        return LoopSettings(**{name: getattr(self.spec, name) for name in settings_of(LoopSettings)})

    @property
    def input_size(self) -> int:
        return self.spec.get(self.workload.input_field) or self.workload.default_input_size

    @property
    def checkpoints(self) -> bool:
        return bool(self.spec.gradient_checkpointing) and self.workload.library_has_checkpointing

    @property
    def frees_gradients(self) -> bool:
        return bool(self.spec.gradients == FREED)

    @property
    def global_batch_size(self) -> int:
        return self.micro_batch_size * self.accumulation_steps * self.devices

    @property
    def torch_optimizer(self) -> Optimizer:
        return OPTIMIZERS[self.spec.optimizer]

    @property
    def is_of_transformers(self) -> bool:
        """Whether the model takes a batch as its arguments and returns the loss with its outputs."""
        return self.workload.library == "transformers"

    def limit_lines(self) -> list[str]:
        if self.device_kind != "cuda" or not self.limit_bytes or not self.capacity_bytes:
            return []
        fraction = self.limit_bytes / self.capacity_bytes
        if fraction >= 1:
            return []
        shown = f"{int(fraction * 10_000) / 10_000:.4f}"  # rounded down
        limit = format_bytes(self.limit_bytes)
        return [f"torch.cuda.set_per_process_memory_fraction({shown})  # {limit}, as in this run"]

    @property
    def loss(self) -> LanguageModelLoss | None:
        """Return the loss to write; None where the model returns its loss, or the reader computes it."""
        is_capped, is_scaled = (self.workload.model_class.startswith(name) for name in ("Gemma2", "Granite"))
        return LanguageModelLoss(self.loop, is_capped, is_scaled) if self.loop.has_own_loss else None

    def optimizer_call(self, parameters: str) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.torch_optimizer.options.items())
        return f"{self.torch_optimizer.path}({parameters}, lr=learning_rate{options})"

    def optimizer_lines(self, parameters: str) -> list[str]:
        modes = ["optimizer.train()  # and optimizer.eval() before an evaluation and before weights are saved"]
        return [f"optimizer = {self.optimizer_call(parameters)}", *(modes if self.torch_optimizer.has_modes else [])]

    def lines_of_optimizers(self) -> list[str]:
        """Return the lines that give each weight an optimizer: where gradients are freed, or state is on the host."""
        modes = ["for optimizer in optimizers.values():", "    optimizer.train()  # and eval() before an evaluation"]
        return [
            "weights = [weight for weight in model.parameters() if weight.requires_grad]",
            f"optimizers = {{weight: {self.optimizer_call('[weight]')} for weight in weights}}",
            *(modes if self.torch_optimizer.has_modes else []),
            *(self._lines_keeping_state_on_host() if self.spec.offload_optimizer else []),
            *(self._lines_stepping_in_backward() if self.frees_gradients else []),
        ]

    def _lines_stepping_in_backward(self) -> list[str]:
        return [
            "",
            "def learn(weight):",
            "    optimizers[weight].step()",
            "    optimizers[weight].zero_grad()",
            "",
            "for weight in weights:",
            "    weight.register_post_accumulate_grad_hook(learn)",
        ]

    def _lines_keeping_state_on_host(self) -> list[str]:
        pinned = ", pin_memory=True" if self.device_kind == "cuda" else ""
        return [
            "",
            "def move(optimizer, copy):",
            "    for state in optimizer.state.values():",
            "        for name, value in state.items():",
            "            if torch.is_tensor(value) and value.dim():",
            "                state[name] = copy(value)",
            "",
            "def to_device(value):",
            "    return value.to(device, non_blocking=True)",
            "",
            "def to_host(value):",
            f'    return torch.empty_like(value, device="cpu"{pinned}).copy_(value)',
            "",
            "for optimizer in optimizers.values():",
            "    optimizer.register_step_pre_hook(lambda stepped, *_: move(stepped, to_device))",
            "    optimizer.register_step_post_hook(lambda stepped, *_: move(stepped, to_host))",
        ]

    def saving(self, *lines: str) -> list[str]:
        """Return the lines of a forward pass, with activations saved in the host's memory where that was measured."""
        if not self.spec.offload_activations:
            return list(lines)
        pinned = "pin_memory=True" if self.device_kind == "cuda" else ""
        return [f"with torch.autograd.graph.save_on_cpu({pinned}):", *(f"    {line}" for line in lines)]

    def yours_lines(self, *more: str) -> list[str]:
        loaded = "model_name, num_labels" if self.workload.label_count else "model_name"
        model = loaded if self.adapters.is_quantized else "model"
        yours = [model, "dataset (its samples are dicts of tensors)", "learning_rate", *more]
        lines = [f"# yours: {', '.join(yours)}"]
        if (rows := _ROWS.get(self.spec.sequences)) is not None:
            lines.append(f"# a sample is a row of {self.input_size:,} tokens, {rows}")
        return lines

    def model_lines(self, *, with_checkpointing: bool = True) -> list[str]:
        if self.adapters.is_quantized:
            lines = self._lines_loading_quantized()
        else:
            lines = ["model = model.to(torch.bfloat16)"] if self.spec.precision == PURE_BF16 else []
        if self.spec.sequences == PACKED:
            lines.append(f"{without_cache()}  # with a cache a packed row counts as one sequence")
        elif self.loop.without_cache:
            lines.append(f"{without_cache()}  # training never reads it")
            if self.workload.has_config_of_decoder:
                lines.append(f"{DECODER_WITHOUT_CACHE}  # a decoder may have a copy of the config")
        if self.adapters.lora_rank is not None:
            options = lora_options(self.adapters, self.workload).items()
            adapters = f"LoraConfig({', '.join(f'{name}={_written(value)}' for name, value in options)})"
            is_fp32 = self.adapters.lora_weights != BF16
            lines.append(
                f"model = get_peft_model(model, {adapters}{'' if is_fp32 else ', autocast_adapter_dtype=False'})"
            )
            if not is_fp32 and self.adapters.is_quantized:
                lines += ["for weight in model.parameters():", "    if weight.requires_grad:"]
                lines.append("        weight.data = weight.data.bfloat16()  # as the model's other weights")
        if with_checkpointing and self.checkpoints:
            lines.append(ENABLING_CHECKPOINTING[self.workload.library])
        return lines

    def _lines_loading_quantized(self) -> list[str]:
        """Write the loading, in which weights are quantised; the others get the dtype that was measured."""
        how = FourBits.of(self.adapters, self.spec.precision)
        in_4_bits = [
            "    load_in_4bit=True,",
            f"    bnb_4bit_quant_type={_written(how.quant_type)},",
            f"    bnb_4bit_use_double_quant={how.is_double},",
            f"    bnb_4bit_compute_dtype=torch.{how.compute_dtype},",
        ]
        skipped = TRAINED_HEADS if self.workload.label_count else [] if how.with_output_layer else None
        heads = [] if skipped is None else [f"    llm_int8_skip_modules={_written(skipped)},"]
        labels = ["    num_labels=num_labels,"] if self.workload.label_count else []
        reason = "" if self._loaded_dtype == "bfloat16" else f"  # {_AS_PREPARED}"
        return [
            "quantization = BitsAndBytesConfig(",
            *(in_4_bits if self.adapters.load_in_4bit else ["    load_in_8bit=True,"]),
            *heads,
            ")",
            f"model = {self.workload.model_class}.from_pretrained(",
            "    model_name,",
            *labels,
            "    quantization_config=quantization,",
            f"    dtype=torch.{self._loaded_dtype},{reason}",
            f"    device_map={self._device_map()},",
            ")",
            *(self._lines_of_compute_type(how.compute_dtype) if self.adapters.load_in_4bit else []),
        ]

    def _lines_of_compute_type(self, compute_dtype: str) -> list[str]:
        """Write what dequantises 4-bit weights into their compute type, and not into the type they were loaded in."""
        if compute_dtype == self._loaded_dtype:
            return []
        return [
            "for weight in model.parameters():",
            '    if hasattr(weight, "quant_state"):',
            f"        weight.quant_state.dtype = torch.{compute_dtype}  # the backward pass dequantises into it",
        ]

    @property
    def _loaded_dtype(self) -> str:
        return "bfloat16" if self.spec.precision == PURE_BF16 else "float32"

    def _device_map(self) -> str:
        """Write the device onto which a process loads its weights: of several processes, each gets its launcher's."""
        if self.device_kind == "cpu" or self.devices == 1:
            return _written(self.device_kind)
        return f'"{self.device_kind}:" + os.environ.get("LOCAL_RANK", "0")'

    def imports(self) -> list[str]:
        library = self.torch_optimizer.library
        imports = [] if library == "torch" else [f"import {library}"]
        if self.adapters.is_quantized:
            imports += ["import os"] if "os." in self._device_map() else []
            imports += [f"from transformers import BitsAndBytesConfig, {self.workload.model_class}"]
        return [
            *imports,
            *(["from peft import LoraConfig, get_peft_model"] if self.adapters.lora_rank is not None else []),
        ]

    def precision_lines(self) -> list[str]:
        """Return the process's switches for TensorFloat-32, which cuDNN uses by default."""
        if self.device_kind != "cuda" or self.spec.precision not in ("fp32", "tf32"):
            return []
        if self.spec.precision == "tf32":
            return list(TF32)
        return ["torch.backends.cudnn.allow_tf32 = False"] if self.workload.architecture == "cnn" else []


def _written(value: Any) -> str:
    return repr(value).replace("'", '"')


def not_written(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings of a stored spec that no code sets, with their labels: "EMA of the weights"."""
    workload = stored_workload(spec)
    has_call = workload is not None and workload.library_has_checkpointing
    written = (*_WRITTEN, *(["gradient_checkpointing"] if has_call else []))
    written += ("strategy",) if spec.get("strategy") == DDP else ()  # what the libraries do with several devices
    others = [name for name in TRAINING_SETTINGS if name not in written]
    return tuple(
        SETTINGS[name].describe(spec[name]) for name in others if spec.get(name, DEFAULTS[name]) != DEFAULTS[name]
    )


def recipe_of(spec: Mapping[str, Any], **how: Any) -> Recipe | None:
    """Make the recipe of a stored spec; None for a command, a model no longer offered, and no optimizer."""
    workload, optimizer = stored_workload(spec), OPTIMIZERS.get(spec.get("optimizer", ""))
    if workload is None or optimizer is None or optimizer.class_name is None or "precision" not in spec:
        return None
    return Recipe(workload, StoredSpec(spec), **how)
