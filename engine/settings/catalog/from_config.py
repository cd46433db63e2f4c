"""PURE: makes a `Workload` from a Hugging Face `config.json` and a task.

A config is untrusted. It is read as data: only model types of the table below are built, with the classes of the
installed transformers that are named here, never with names in the config. What would load, download or run something
else is refused or left out, and numbers are bounded before anything is built.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from ...errors import SpecError
from . import Architecture, Task, Workload

CONFIG = "config"
"""The `model` of a spec with a config; in the stored spec it becomes `config-` with the config's digest."""
SIZE_BYTES_MAX, DEPTH_MAX, VALUES_MAX, KEY_LENGTH_MAX = 64 * 1024, 4, 20_000, 100
INTEGER_MAX, LIST_MAX = 10_000_000, 1024
_TEXT = re.compile(r"[\w.+-]{0,64}", re.ASCII)
_DIGEST_LENGTH, _SHOWN_OF_DIGEST = 12, 6
_DEFAULT_TOKENS = {"text-classification": 128}
_ROTARY_TOKENS_MAX = 131_072
_TARGET_TOKENS = 128


@dataclass(frozen=True, slots=True)
class ModelType:
    """The classes of one `model_type` in the installed transformers, by the task that it is trained for here."""

    task: Task
    prefix: str
    model_suffix: str
    architecture: Architecture = "transformer"
    config_class: str = ""
    positions_offset: int = 0  # positions that are reserved and hold no token
    has_gradient_checkpointing: bool = True
    attentions: tuple[str, ...] = ()


_CONVOLUTIONAL = ("convnext", "resnet")
_UNCHECKPOINTED = ("albert", "mpnet", *_CONVOLUTIONAL)
"""The types that transformers does not checkpoint, and whose blocks the engine does not know in every config."""
_WITHOUT_ATTENTION = {
    "eager": _CONVOLUTIONAL,
    "sdpa": ("gemma2", "bloom", "deberta-v2", "mpnet", *_CONVOLUTIONAL),
    "flash_attention_2": ("bloom", "deberta-v2", "mpnet", "t5", "mt5", "swin", *_CONVOLUTIONAL),
}
"""The types that transformers does not have each implementation of attention for."""


def _of(task: Task, suffix: str, prefixes: Mapping[str, str], **others: Any) -> dict[str, ModelType]:
    return {
        name: ModelType(
            task,
            prefix,
            suffix,
            has_gradient_checkpointing=name not in _UNCHECKPOINTED,
            attentions=tuple(each for each, lacking in _WITHOUT_ATTENTION.items() if name not in lacking),
            **others,
        )
        for name, prefix in prefixes.items()
    }


_DECODERS = {
    **{"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma"},
    **{"gemma2": "Gemma2", "gpt_neox": "GPTNeoX", "phi": "Phi", "phi3": "Phi3", "olmo": "Olmo", "olmo2": "Olmo2"},
    **{"opt": "OPT", "falcon": "Falcon", "bloom": "Bloom", "stablelm": "StableLm", "starcoder2": "Starcoder2"},
    **{"granite": "Granite"},
}
_EXPERTS = {"mixtral": "Mixtral", "qwen2_moe": "Qwen2Moe", "qwen3_moe": "Qwen3Moe", "olmoe": "Olmoe"}
_ENCODERS = {
    **{"bert": "Bert", "distilbert": "DistilBert", "electra": "Electra", "albert": "Albert"},
    **{"modernbert": "ModernBert", "deberta-v2": "DebertaV2"},
}
_OFFSET_ENCODERS = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert", "mpnet": "MPNet"}
MODEL_TYPES: dict[str, ModelType] = {
    **_of("text-generation", "ForCausalLM", _DECODERS),
    **_of("text-generation", "ForCausalLM", _EXPERTS, architecture="mixture_of_experts"),
    **_of("text-generation", "LMHeadModel", {"gpt2": "GPT2"}),
    **_of("text-generation", "ForCausalLM", {"gemma3_text": "Gemma3"}, config_class="Gemma3TextConfig"),
    **_of("text-classification", "ForSequenceClassification", _ENCODERS),
    **_of("text-classification", "ForSequenceClassification", _OFFSET_ENCODERS, positions_offset=2),
    **_of("text2text-generation", "ForConditionalGeneration", {"t5": "T5", "mt5": "MT5", "bart": "Bart"}),
    **_of("image-classification", "ForImageClassification", {"vit": "ViT", "deit": "DeiT", "swin": "Swin"}),
    **_of(
        "image-classification",
        "ForImageClassification",
        {"convnext": "ConvNext", "resnet": "ResNet"},
        architecture="cnn",
    ),
}
TASKS = tuple(task for task in get_args(Task) if any(each.task == task for each in MODEL_TYPES.values()))

_LARGEST: dict[int, tuple[str, ...]] = {
    512: (
        *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
        *("encoder_layers", "decoder_layers", "num_local_experts", "num_experts", "num_experts_per_tok"),
        *("patch_size", "window_size"),
    ),
    1024: (
        *("num_attention_heads", "num_key_value_heads", "n_head", "n_heads", "num_heads", "num_kv_heads"),
        *("encoder_attention_heads", "decoder_attention_heads", "type_vocab_size"),
    ),
    131_072: (
        *("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "word_embed_proj_dim"),
        *("head_dim", "d_kv", "intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim"),
        *("moe_intermediate_size", "shared_expert_intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim"),
    ),
    4096: ("image_size",),
    64: ("num_channels",),
    100_000: ("num_labels",),
    2_000_000: ("vocab_size",),
}
_POSITIONS = ("max_position_embeddings", "n_positions", "seq_length")
DIMENSIONS: dict[str, int] = dict.fromkeys(_POSITIONS, INTEGER_MAX) | {
    name: most for most, names in _LARGEST.items() for name in names
}
"""The largest allowed value of each size, which is at least 1."""

_REFUSED = {
    "auto_map": "names code outside of transformers, which is never run; leave it out",
    "trust_remote_code": "is never done; leave it out",
    "quantization_config": "quantized weights cannot be trained here; leave it out",
}
# these do not affect shapes, belong to the spec, or would load something else
_LEFT_OUT = frozenset(
    (
        *("architectures", "model_type", "transformers_version", "torch_dtype", "dtype", "torchscript"),
        *("attn_implementation", "experts_implementation", "gradient_checkpointing", "use_kernels", "use_bfloat16"),
        *("id2label", "label2id", "task_specific_params", "finetuning_task", "problem_type", "pruned_heads"),
        *("output_attentions", "output_hidden_states", "return_dict", "backbone", "backbone_config"),
        *("backbone_kwargs", "use_pretrained_backbone", "use_timm_backbone", "tp_plan", "pp_plan", "tokenizer_class"),
        *("prefix", "chunk_size_feed_forward", "summary_activation", "out_features", "out_indices", "is_decoder"),
        *("add_cross_attention", "is_encoder_decoder"),
    )
)
_NESTED = ("rope_scaling", "rope_parameters")


@dataclass(frozen=True, slots=True)
class GivenConfig:
    """A config that was read: its normalized text, and the values that the model is built with."""

    text: str
    task: Task
    model_type: str
    digest: str
    values: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{CONFIG}-{self.digest}"

    def workload(self, parameter_count: int | None) -> Workload:
        """Return the config as a workload like those of the catalogue; a count of None is not known yet."""
        known, values = MODEL_TYPES[self.model_type], dict(self.values)
        labels = values.pop("num_labels", 2) if self.task.endswith("classification") else None
        is_image = self.task == "image-classification"
        size, sizes = (_image_sizes if is_image else _token_sizes)(self)
        count = "" if parameter_count is None else f" {describe_count(parameter_count)}"
        return Workload(
            id=self.id,
            name=f"{self.model_type}-like{count}, config {self.digest[:_SHOWN_OF_DIGEST]}",
            description=f"Of a config.json, task {self.task}",
            task=self.task,
            library="transformers",
            architecture=known.architecture,
            parameter_count=parameter_count or 0,
            model_class=f"{known.prefix}{known.model_suffix}",
            config_class=known.config_class or f"{known.prefix}Config",
            config=values,
            default_input_size=size,
            input_sizes=sizes,
            input_multiple_of=32 if is_image and known.architecture == "cnn" else 1,
            label_count=labels,
            vocabulary_size=values.get("vocab_size"),
            target_length=_TARGET_TOKENS if self.task == "text2text-generation" else None,
            attentions=known.attentions,
            has_gradient_checkpointing=known.has_gradient_checkpointing,
        )


def read_config(given: object, task: object) -> GivenConfig:
    """Read a config: JSON text or an object. Raises SpecError, which names the field and what is allowed."""
    if isinstance(given, str):
        return _read_text(given, task if isinstance(task, str) else None)
    if not isinstance(given, dict):
        raise SpecError("config", "must be the JSON object of a config.json")
    _check_shape(given)  # before it is written as text, which may not end or fail for deep nesting
    try:
        return _read_text(json.dumps(given, allow_nan=False), task if isinstance(task, str) else None)
    except ValueError as exc:
        raise SpecError("config", "holds a number that is not finite") from exc


@lru_cache(maxsize=64)
def _read_text(text: str, task: str | None) -> GivenConfig:
    if len(text.encode(errors="replace")) > SIZE_BYTES_MAX:
        raise SpecError("config", f"is larger than {SIZE_BYTES_MAX // 1024} KiB")
    try:
        config = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as exc:
        reason = "is nested too deeply" if isinstance(exc, RecursionError) else f"is not valid JSON: {str(exc)[:200]}"
        raise SpecError("config", reason) from exc
    if not isinstance(config, dict):
        raise SpecError("config", "must be a JSON object")
    _check_shape(config)
    known, model_type = _model_type(config)
    if task not in TASKS:
        raise SpecError("task", f"is required with a config; one of {', '.join(TASKS)}")
    if known.task != task:
        raise SpecError("task", f"{model_type} is trained for {known.task} here, not for {task}")
    values = _values(config)
    if known.task != "image-classification" and "vocab_size" not in values:
        raise SpecError("config", "vocab_size is missing: how many tokens the vocabulary has")
    normalized = json.dumps({"model_type": model_type, **values}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{known.task} {normalized}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return GivenConfig(normalized, known.task, model_type, digest, values)


def _model_type(config: Mapping[str, Any]) -> tuple[ModelType, str]:
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in MODEL_TYPES:
        shown = "is missing" if model_type is None else f"{str(model_type)[:80]!r} is not offered"
        raise SpecError("config", f"model_type {shown}; one of {', '.join(sorted(MODEL_TYPES))}")
    return MODEL_TYPES[model_type], model_type


def _values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values that the model is built with, as far as they affect shapes."""
    values: dict[str, Any] = {}
    for name, value in config.items():
        if name in _REFUSED and value not in (None, False):
            raise SpecError("config", f"{name} {_REFUSED[name]}")
        if name in _LEFT_OUT or name in _REFUSED or name.startswith("_") or value is None:
            continue
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise SpecError("config", f"{name[:80]!r} is no name of a setting; letters, digits and _ are allowed")
        values[name] = _value(name, value)
    if isinstance(labels := config.get("id2label"), dict) and labels:
        values.setdefault("num_labels", _value("num_labels", len(labels)))
    return values


def _value(name: str, value: Any) -> Any:
    if name in DIMENSIONS:
        return _dimension(name, value)
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        if abs(value) > INTEGER_MAX if isinstance(value, int) else not math.isfinite(value):
            raise SpecError("config", f"{name} is out of range; at most {INTEGER_MAX:,}")
        return value
    if isinstance(value, str):
        if not _TEXT.fullmatch(value):
            raise SpecError("config", f"{name} must be a short word: paths and addresses are never followed")
        return value
    if isinstance(value, list):
        if len(value) > LIST_MAX or any(isinstance(each, (list, dict)) for each in value):
            raise SpecError("config", f"{name} must be a list of at most {LIST_MAX:,} plain values")
        return [_value(name, each) for each in value]
    if name not in _NESTED:
        raise SpecError("config", f"{name} is an object: a model made of several models is not supported")
    return {key: _value(key, each) for key, each in value.items() if each is not None}


def _dimension(name: str, value: Any) -> int | list[int]:
    most = DIMENSIONS[name]
    if name in ("num_heads", "patch_size", "image_size") and isinstance(value, list) and 0 < len(value) <= 8:
        return [each for one in value if isinstance(each := _dimension(name, one), int)]
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError("config", f"{name} must be a whole number, not {json.dumps(value)[:40]}")
    if not 1 <= value <= most:
        raise SpecError("config", f"{name} is {str(value)[:20]}; from 1 to {most:,} is allowed")
    return value


def _token_sizes(config: GivenConfig) -> tuple[int, tuple[int, int]]:
    values, known = config.values, MODEL_TYPES[config.model_type]
    positions = next((values[name] for name in _POSITIONS if name in values), 512)
    longest = min(positions - known.positions_offset, _ROTARY_TOKENS_MAX)
    if longest < 2:
        raise SpecError("config", "max_position_embeddings leaves no room for two tokens")
    return min(_DEFAULT_TOKENS.get(config.task, 512), longest), (2, longest)


def _image_sizes(config: GivenConfig) -> tuple[int, tuple[int, int]]:
    """Return the side of an image, and the allowed ones; only convolutional networks allow more than the config's."""
    size = config.values.get("image_size", 224)
    if not isinstance(size, int):
        raise SpecError("config", "image_size must be one whole number: images are square")
    return (size, (32, 1024)) if MODEL_TYPES[config.model_type].architecture == "cnn" else (size, (size, size))


def describe_count(parameter_count: int) -> str:
    """Write "1.24 B", "66.4 M", "0.202 M"."""
    factor, unit = (10**9, "B") if parameter_count >= 10**9 else (10**6, "M")
    return f"{parameter_count / factor:.3g} {unit}"


def _check_shape(config: dict[Any, Any]) -> None:
    level: list[Any] = [config]
    seen = 0
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for each in level:
            for key in each if isinstance(each, dict) else ():
                if not isinstance(key, str) or len(key) > KEY_LENGTH_MAX:
                    raise SpecError("config", f"has a name of more than {KEY_LENGTH_MAX} characters")
            children = list(each.values()) if isinstance(each, dict) else each
            seen += len(children)
            inner += [child for child in children if isinstance(child, (dict, list))]
        if seen > VALUES_MAX:
            raise SpecError("config", f"has more than {VALUES_MAX:,} values")
        if not inner:
            return
        level = inner
    raise SpecError("config", f"is nested more than {DEPTH_MAX} levels deep")


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a name stands twice in one object")
    return dict(pairs)
