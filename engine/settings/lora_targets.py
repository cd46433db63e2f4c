"""PURE: which layers of a model get a LoRA adapter: all linear ones, those of its attention, or named ones.

The names are those of the installed transformers, by the class of the model. Where peft names the layers of a model's
query and value itself (`TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`), a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import SpecError
from .catalog import Workload
from .setting import TextValues

ALL_LINEAR, ATTENTION, QUERY_VALUE = "all-linear", "attention", "query-value"
TARGETS = {
    ALL_LINEAR: "all linear layers but the output layer",
    ATTENTION: "the attention's linear layers: query, key, value, output",
    QUERY_VALUE: "query and value, as most examples",
}
_NAME = r"[A-Za-z_]\w*(?:\.\w+)*"
NAMES = TextValues(re.compile(rf"{_NAME}(?:,{_NAME})*", re.ASCII), "names of layers joined by commas", max_length=160)
_LISTED = 15
"""The most names of layers that an error lists."""


class AttentionLayers(NamedTuple):
    """The names of a model's layers of attention. Query and value are one name where one layer makes them."""

    query_value: tuple[str, ...]
    key_output: tuple[str, ...]


_DECODER = AttentionLayers(("q_proj", "v_proj"), ("k_proj", "o_proj"))
_FAIRSEQ = AttentionLayers(("q_proj", "v_proj"), ("k_proj", "out_proj"))
_BERT = AttentionLayers(("query", "value"), ("key", "attention.output.dense"))
_T5 = AttentionLayers(("q", "v"), ("k", "o"))
_BLOOM = AttentionLayers(("query_key_value",), ("self_attention.dense",))
_BY_CLASS = {
    **dict.fromkeys(("Bert", "Roberta", "XLMRoberta", "Camembert", "Electra"), _BERT),
    **dict.fromkeys(("Bart", "Whisper", "CLIP", "OPT"), _FAIRSEQ),
    **dict.fromkeys(("T5", "MT5", "MPNet"), _T5),
    **dict.fromkeys(("Bloom", "Falcon"), _BLOOM),
    "Albert": AttentionLayers(("query", "value"), ("key", "attention.dense")),
    "DebertaV2": AttentionLayers(("query_proj", "value_proj"), ("key_proj", "attention.output.dense")),
    "DistilBert": AttentionLayers(("q_lin", "v_lin"), ("k_lin", "out_lin")),
    "GPT2": AttentionLayers(("c_attn",), ("attn.c_proj",)),
    "GPTNeoX": AttentionLayers(("query_key_value",), ("attention.dense",)),
    "ModernBert": AttentionLayers(("Wqkv",), ("attn.Wo",)),
    "Phi": AttentionLayers(("q_proj", "v_proj"), ("k_proj", "self_attn.dense")),
    "Phi3": AttentionLayers(("qkv_proj",), ("o_proj",)),
}
"""By the beginning of a model's class; all others have the names of Llama."""


def names_in_order(targets: str) -> str:
    """Write a list of names in one way, so that equal trainings have equal specs; one word stays as it is."""
    names = {name for part in targets.split(",") if (name := part.strip())}
    return ",".join(sorted(names)) if "," in targets else targets.strip()


def target_modules(targets: str, workload: Workload) -> str | list[str]:
    """Return peft's `target_modules`: the names that "attention" and "query-value" mean in this model."""
    if targets == ALL_LINEAR:
        return targets
    if targets not in TARGETS:
        return targets.split(",")
    beginnings = (known for known in _BY_CLASS if re.match(rf"{known}(?=For|LMHead|Model)", workload.model_class))
    layers = _BY_CLASS.get(next(beginnings, ""), _DECODER)
    return [*layers.query_value, *(layers.key_output if targets == ATTENTION else ())]


def describe_targets(targets: str, workload: Workload) -> str | None:
    """Say which layers a word means in this model; None where the setting says so itself."""
    if targets == ALL_LINEAR or targets not in TARGETS:
        return None
    return f"LoRA targets {targets}: in {workload.name} these are {', '.join(target_modules(targets, workload))}"


def check_targets(targets: Sequence[str], paths: Iterable[str], model_name: str) -> None:
    """Raise SpecError for a name that no layer of the model has. `paths` are those that may get an adapter."""
    known = list(paths)
    for name in targets:
        if not any(path == name or path.endswith(f".{name}") for path in known):
            names = dict.fromkeys(path.rpartition(".")[2] for path in known)
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            has = f"{', '.join([*names][:_LISTED])}{more}"
            raise SpecError("lora_targets", f"{model_name} has no linear layer {name[:80]!r}; it has {has}")
