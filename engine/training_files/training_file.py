"""PURE: a file of a tool as the settings of a training: what was read, assumed, unknown or not estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..settings.adapter_settings import BF16, FP32
from ..settings.loop_settings import RECOMPUTED
from ..settings.lora_targets import ALL_LINEAR
from ..settings.profiles import PROFILES
from ..settings.rank_settings import DDP, FSDP, ZERO1
from ..settings.spec import MAX_BATCH_SIZE, RunSpec
from ..settings.step_settings import FREED, PURE_BF16
from .entries import FIELD, Entry, entries_of, refused, text_of
from .models import LANGUAGE_MODEL, settings_of_model
from .tools import TOOLS, TORCHTUNE, TRL, Meaning, Tool

M = Meaning
LIGER_CHUNK_TOKENS = 1024
"""Tokens of a sample in one chunk, where Liger's loss is estimated as one in chunks."""
LOSS_CHUNKS = PROFILES["torchtune-lora"].loss_chunks or 1
_OTHERS = {
    **dict.fromkeys(
        ("use_gradient_checkpointing", "use_exact_model_name"),
        "is of Unsloth: its own kernels, and what they move to the host, cannot be estimated",
    ),
    **dict.fromkeys(
        ("tensor_model_parallel_size", "recompute_granularity", "no_save_optim"),
        "is of Megatron: its own layers, and their parts on several GPUs, cannot be estimated",
    ),
}
"""Keys of tools whose trainings cannot be estimated, and why."""
OPTIMIZERS = {
    **dict.fromkeys(("adamw_torch", "adamw_hf", "adamw", "torch.optim.AdamW"), "adamw"),
    "adamw_torch_fused": "adamw-fused",
    **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "bitsandbytes.optim.AdamW8bit"), "adamw-8bit"),
    **dict.fromkeys(("paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit"), "paged-adamw-8bit"),
    **dict.fromkeys(("paged_adamw_32bit", "paged_adamw", "bitsandbytes.optim.PagedAdamW"), "paged-adamw-32bit"),
    "schedule_free_adamw": "schedule-free-adamw",
    **dict.fromkeys(("lion_32bit", "lion"), "lion"),
    "lion_8bit": "lion-8bit",
    **dict.fromkeys(("sgd", "torch.optim.SGD"), "sgd"),
    "adafactor": "adafactor",
    "rmsprop": "rmsprop",
    "adagrad": "adagrad",
}
_SIZES = {"current_batch_size": M.BATCH_SIZE, "accumulation_steps": M.ACCUMULATION, "sequence_length": M.LENGTH}
_FIELDS = _SIZES | {
    "optimizer": M.OPTIMIZER,
    "lora_rank": M.LORA_RANK,
    "lora_targets": M.LORA_TARGETS,
    "lora_dropout": M.LORA_DROPOUT,
    "attention": M.ATTENTION,
    "gradients": M.FREED_GRADIENTS,
    "four_bit_format": M.FOUR_BIT_TYPE,
}
_SUPERVISED = ("sft", "pt", "cpt", "causal_lm")


@dataclass(frozen=True, slots=True)
class TrainingFile:
    """A file as read. `not_estimated` keys change the memory in ways the estimate has not; `unknown` ones may."""

    path: Path
    text: str
    tool: Tool
    spec: RunSpec
    read: Sequence[Entry]
    assumed: Sequence[str]
    not_estimated: Sequence[Entry]
    harmless: Sequence[Entry]
    unknown: Sequence[Entry]

    def line_of(self, meaning: Meaning) -> Entry | None:
        return next((each for each in self.read if self.tool.keys[each.key] is meaning), None)


def read_training_file(path: Path, given: Mapping[str, Any]) -> TrainingFile:
    """Read the file; `given` are settings that stand over it. Raises SpecError, naming key and line."""
    text = text_of(path)
    entries = entries_of(text, path.name)
    keys = {each.key for each in entries}
    if other := next((reason for key, reason in _OTHERS.items() if key in keys), None):
        raise SpecError(FIELD, other)
    tool = next((each for each in TOOLS if keys & {*each.marks}), None)
    if tool is None:
        named = ", ".join(each.name for each in TOOLS)
        raise SpecError(FIELD, f"has no key of a training of {named}, such as model_name_or_path or base_model")
    reader = _Reader(tool, entries)
    model = {"task": LANGUAGE_MODEL} if "config" in given else settings_of_model(reader.model(), path.parent)
    try:
        spec = RunSpec.from_dict(reader.settings() | reader.shared(given.get("ranks")) | model | dict(given))
    except SpecError as error:
        raise reader.named(error) from error
    if tool is TORCHTUNE:
        spec = replace(spec, loss_chunk_tokens=-(-spec.input_size // LOSS_CHUNKS))
    if M.LENGTH not in reader.found:
        reader.assumed.insert(0, f"rows of {spec.input_size:,} tokens: the file names no length")
    by_kind: dict[str, list[Entry]] = {"read": [], "not_estimated": [], "harmless": [], "unknown": []}
    for each in entries:
        by_kind[reader.kind_of(each)].append(each)
    return TrainingFile(path, text, tool, spec, assumed=reader.assumed, **by_kind)


@dataclass
class _Reader:
    tool: Tool
    entries: Sequence[Entry]
    assumed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = (each for each in self.entries if each.key in self.tool.keys and each.value is not None)
        self.found = {self.tool.keys[each.key]: each for each in known}

    def named(self, error: SpecError) -> SpecError:
        """Return the error with the key and line of the file that its field was read from."""
        meaning = _FIELDS.get(error.field or "")
        entry = None if meaning is None else self.found.get(meaning)
        return error if entry is None else refused(entry.line, entry.key, error.reason)

    def kind_of(self, entry: Entry) -> str:
        meaning = self.tool.keys.get(entry.key)
        if meaning is M.UNESTIMATED:
            return "not_estimated" if entry.value else "harmless"
        if meaning is not None:
            return "read" if entry.value is not None else "harmless"
        parents = {entry.key.rpartition(".")[0], entry.key.partition(".")[0]} - {""}
        is_part = any(self.tool.keys.get(parent) for parent in parents)
        return "harmless" if is_part or self.tool.is_harmless(entry.key) else "unknown"

    def value(self, meaning: Meaning) -> Any:
        """Return the value of the file, or what the tool does without."""
        entry = self.found.get(meaning)
        return self.tool.without.get(meaning) if entry is None else entry.value

    def settings(self) -> dict[str, Any]:
        self._refuse_other_objectives()
        trains_adapters = self._trains_adapters()
        sizes, step = self._sizes(), self._step()
        precision = self._precision(trains_adapters=trains_adapters)
        return {
            **self.tool.library,
            **sizes,
            **step,
            "precision": precision,
            **(self._adapters(precision) if trains_adapters else {}),
            **self._loss(),
        }

    def _refuse_other_objectives(self) -> None:
        entry = self.found.get(M.OBJECTIVE)
        if entry is not None and entry.value not in _SUPERVISED:
            reason = (
                f"{entry.value} holds more than one forward pass of one model: {', '.join(_SUPERVISED)} are estimated"
            )
            raise self._refusal(M.OBJECTIVE, reason)

    def model(self) -> Entry:
        entry = self.found.get(M.MODEL)
        if entry is None:
            raise SpecError(FIELD, f"names no model: {self.tool.key_of(M.MODEL)} is missing")
        if self.tool is not TORCHTUNE:
            return entry
        name = str(entry.value).rpartition(".")[2]
        return Entry(entry.key, name.removeprefix("q").removeprefix("lora_"), entry.line)

    def _sizes(self) -> dict[str, Any]:
        settings = {}
        for name, meaning in _SIZES.items():
            value = self.value(meaning)
            if value in (None, "auto"):
                if meaning is M.BATCH_SIZE:
                    raise SpecError(FIELD, f"names no batch size: {self.tool.key_of(meaning)} is missing")
                continue
            settings[name] = self._whole_number(meaning, value)
        if M.OPTIMIZER not in self.found and self.tool is not TORCHTUNE:
            named = self.tool.without[M.OPTIMIZER]
            self.assumed.append(
                f"optimizer {named}: before transformers 5 the default was adamw_torch, which takes more"
            )
        if not self.value(M.PACKING):
            self.assumed.append("every row is as long as the longest that is allowed: shorter ones take less")
        return settings

    def shared(self, ranks: int | None) -> dict[str, Any]:
        """Return how the file shares a training over these ranks; without their number it is of one GPU."""
        several = self.found.get(M.SEVERAL_GPUS)
        if ranks is None:
            if several is not None:
                said = f"one GPU: {several.key} shares a training over several, name their number with --ranks"
                self.assumed.append(said)
            return {}
        text = "" if several is None else f"{several.key} {several.value}".lower()
        if any(word in text for word in ("fsdp", "z3", "zero3")):
            return {"strategy": FSDP}
        return {"strategy": ZERO1 if "zero1" in text or "z1" in text else DDP}

    def _whole_number(self, meaning: Meaning, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
            raise self._refusal(meaning, f"{str(value)[:40]!r} is no whole number from 1 to {MAX_BATCH_SIZE:,}")
        return int(value)

    def _refusal(self, meaning: Meaning, reason: str) -> SpecError:
        """Return the error about a key of the file, or about one that it would have in its first line."""
        entry = self.found.get(meaning) or Entry(self.tool.key_of(meaning), None, 1)
        return refused(entry.line, entry.key, reason)

    def _step(self) -> dict[str, Any]:
        checkpoints = self.value(M.CHECKPOINTING)
        if checkpoints in ("offload", "unsloth"):
            self.assumed.append(f"what {checkpoints} moves to the host stays on the GPU: less may be taken")
        has_freed_gradients = bool(self.value(M.FREED_GRADIENTS))
        attention = self._attention()
        if self.value(M.COMPILE):
            self.assumed.append("torch.compile left out: what it joins and frees is not in a trace")
        return {
            "optimizer": self._optimizer(),
            "gradient_checkpointing": bool(checkpoints) and not self.value(M.NO_CHECKPOINTING),
            "clip_grad_norm": bool(self.value(M.CLIP)) and not has_freed_gradients,
            "offload_activations": self.value(M.OFFLOAD_ACTIVATIONS) is True,
            **({"gradients": FREED} if has_freed_gradients else {}),
            **({"attention": attention} if attention else {}),
            **({"sequences": "packed"} if self.value(M.PACKING) and not self._is_flash() else {}),
        }

    def _is_flash(self) -> bool:
        named = str(self.value(M.ATTENTION) or "")
        return "flash" in named or self.value(M.FLASH) in (True, "auto", "fa2", "fa3") or self.tool in (TORCHTUNE, TRL)

    def _attention(self) -> str | None:
        named = self.value(M.ATTENTION)
        if named in ("eager", "sdpa"):
            return str(named)
        if self.value(M.FLASH) == "disabled":
            return "eager"
        if "flash" in str(named or "") or self.value(M.FLASH) in (True, "fa2", "fa3"):
            self.assumed.append("FlashAttention read as sdpa, whose flash kernel keeps as much")
        return None

    def _optimizer(self) -> str:
        named = str(self.value(M.OPTIMIZER))
        found = OPTIMIZERS.get(named)
        if found is None:
            raise self._refusal(M.OPTIMIZER, f"{named[:80]!r} is not estimated: one of {', '.join(OPTIMIZERS)}")
        if found == "adamw" and any(each.key == "optimizer.fused" and each.value for each in self.entries):
            return "adamw-fused"
        return found

    def _precision(self, *, trains_adapters: bool) -> str:
        weights = str(self.value(M.WEIGHTS_TYPE) or "")
        is_half = self.value(M.BF16) in (True, "auto", "true", "full") or weights in ("bf16", "bfloat16")
        if not is_half and not self.value(M.FP16):
            return "tf32" if self.value(M.TF32) else "fp32"
        has_half_weights = bool(self.value(M.PURE_BF16)) or weights in ("bf16", "bfloat16", "float16", "fp16", "auto")
        has_half_weights = has_half_weights or (trains_adapters and self.tool.without.get(M.FLASH) == "auto")
        if not has_half_weights:
            if self.tool is TRL and M.WEIGHTS_TYPE not in self.found:
                self.assumed.append("weights in fp32: the file names no dtype")
            return "bf16" if is_half else "fp16"
        if not is_half:
            self.assumed.append("fp16 weights read as bf16 ones: they take as much")
        return PURE_BF16

    def _trains_adapters(self) -> bool:
        if self.tool is TORCHTUNE:
            return M.LORA_RANK in self.found
        value = self.value(M.ADAPTER)
        if value in ("lora", "qlora", True):
            return True
        if value in (None, False, "full", ""):
            return False
        raise self._refusal(M.ADAPTER, f"{str(value)[:40]!r} is not estimated: full, lora or qlora are")

    def _adapters(self, precision: str) -> dict[str, Any]:
        is_4_bit = bool(self.value(M.FOUR_BITS)) or self.value(M.BITS) == 4 or self.value(M.ADAPTER) == "qlora"
        if self.tool is TORCHTUNE:
            is_4_bit = any(each.key == "model.quantize_base" and each.value for each in self.entries)
            is_4_bit = is_4_bit or ".qlora_" in str(self.found[M.MODEL].value)
        quantizer = self.found.get(M.QUANTIZER)
        if quantizer is not None and quantizer.value not in ("bnb", "bitsandbytes"):
            raise self._refusal(M.QUANTIZER, f"{quantizer.value} is not estimated: bnb is")
        settings: dict[str, Any] = {
            "lora_rank": self._whole_number(M.LORA_RANK, self.value(M.LORA_RANK)),
            "lora_targets": self._targets(),
            "lora_dropout": float(self.value(M.LORA_DROPOUT) or 0.0),
            "lora_variant": "dora" if self.value(M.DORA) else "rslora" if self.value(M.RSLORA) else "plain",
            "load_in_4bit": is_4_bit,
            "load_in_8bit": not is_4_bit and (bool(self.value(M.EIGHT_BITS)) or self.value(M.BITS) == 8),
        }
        has_half_adapters = self.tool is TORCHTUNE or (self.tool is TRL and is_4_bit)
        if precision == PURE_BF16:
            settings["lora_weights"] = BF16 if has_half_adapters else FP32
        if is_4_bit:
            is_double = self.value(M.DOUBLE_QUANTIZATION) is not False
            settings["four_bit_format"] = f"{self.value(M.FOUR_BIT_TYPE) or 'nf4'}{'-dq' if is_double else ''}"
        return settings

    def _targets(self) -> str:
        named = self.value(M.LORA_TARGETS)
        if self.value(M.LORA_ALL) or named in (None, "all", "all-linear", ["all-linear"], ["all"]):
            return ALL_LINEAR
        names = [named] if isinstance(named, str) else list(named)
        if self.tool is TORCHTUNE:
            names = ["o_proj" if each == "output_proj" else each for each in names]
            if any(each.key == "model.apply_lora_to_mlp" and each.value for each in self.entries):
                names += ["gate_proj", "up_proj", "down_proj"]
        return ",".join(map(str, names))

    def _loss(self) -> dict[str, Any]:
        if self.tool is TORCHTUNE or not self.value(M.LIGER):
            return {}
        self.assumed.append(f"the fused loss read as one in chunks of {LIGER_CHUNK_TOKENS:,} tokens, computed again")
        return {"loss_chunk_tokens": LIGER_CHUNK_TOKENS, "loss_chunk_logits": RECOMPUTED}
