"""PURE: profiles, the settings with which well-known libraries train by default, each with where they were read.

A profile stands under the settings that are given: what is given wins. What has no setting here is in its `note`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ..errors import SpecError
from .adapter_settings import BF16
from .catalog import Workload
from .loop_settings import RELEASED
from .lora_targets import QUERY_VALUE
from .step_settings import BEFORE_BACKWARD, PURE_BF16


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of one library's training, and the file and version of their source; `loss_chunks` of a sample."""

    label: str
    library: str
    version: str
    source: str
    settings: Mapping[str, Any]
    note: str = ""
    loss_chunks: int | None = None

    @property
    def origin(self) -> str:
        """Write "torchtune 0.7.0, recipes/configs/llama3_1/8B_lora_single_device.yaml"."""
        return f"{self.library} {self.version}, {self.source}"


_TORCHTUNE_LORA = {
    "precision": PURE_BF16,
    "optimizer": "adamw-fused",
    "accumulation_steps": 8,
    "gradient_checkpointing": True,
    "lora_rank": 8,
    "lora_weights": BF16,
    "lora_targets": "down_proj,gate_proj,o_proj,q_proj,up_proj,v_proj",
    "outputs": RELEASED,
    "without_cache": True,
}
_TORCHTUNE_NOTE = (
    "Its own models and its attention are other code; here the transformers models are trained. The loss's 8 chunks "
    "are of the length given: a search of the longest sequence keeps their size."
)
_LITGPT_LORA = {
    "precision": PURE_BF16,
    "optimizer": "adamw",
    "accumulation_steps": 8,
    "lora_rank": 32,
    "lora_targets": QUERY_VALUE,
    "lora_dropout": 0.05,
    "lora_weights": BF16,
    "without_cache": True,
    "loss_chunk_tokens": 128,
}
_LITGPT_NOTE = (
    "Its texts have at most 512 tokens. Its own models are other code: one layer makes query, key and value (see "
    "the known error), and no output layer is tied (--config with tie_word_embeddings false). Its precision converts "
    "all logits to fp32 at once, here each chunk's are."
)
PROFILES = {
    "hf-trainer": Profile(
        "Trainer of transformers, with its default arguments",
        "transformers",
        "5.23.0",
        "training_args.py (optim, max_grad_norm, use_cache) and trainer.py (compute_loss)",
        {"optimizer": "adamw-fused", "clip_grad_norm": True, "outputs": RELEASED, "without_cache": True},
        "Its defaults are fp32 and no checkpointing: bf16=True is --precision bf16.",
    ),
    "lightning": Profile(
        "Trainer of Lightning, with its default arguments",
        "lightning",
        "2.6.6",
        "pytorch/trainer/trainer.py and pytorch/loops/optimization/automatic.py",
        {"precision": "fp32", "outputs": RELEASED, "zero_grad": BEFORE_BACKWARD},
        "The optimizer is the module's own.",
    ),
    "litgpt-lora": Profile(
        "LoRA of LitGPT, as for Llama 3.1 8B in its config hub",
        "litgpt",
        "0.5.13",
        "config_hub/finetune/llama-3.1-8b/lora.yaml and litgpt/finetune/lora.py",
        _LITGPT_LORA,
        _LITGPT_NOTE,
    ),
    "litgpt-qlora": Profile(
        "LoRA on 4-bit base weights of LitGPT, as for Llama 3.1 8B in its config hub",
        "litgpt",
        "0.5.13",
        "config_hub/finetune/llama-3.1-8b and litgpt/finetune/lora.py",
        {**_LITGPT_LORA, "accumulation_steps": 4, "load_in_4bit": True, "four_bit_format": "nf4"},
        f"{_LITGPT_NOTE} Its output layer is in 4 bits too: --4bit-output-layer, where it is not tied. "
        "A weight of 4 bits becomes fp16 before bf16: twice the largest layer's copy.",
    ),
    "torchtune-lora": Profile(
        "LoRA of torchtune on one device, as for Llama 3.1 8B",
        "torchtune",
        "0.7.0",
        "recipes/configs/llama3_1/8B_lora_single_device.yaml and recipes/lora_finetune_single_device.py",
        _TORCHTUNE_LORA,
        _TORCHTUNE_NOTE,
        loss_chunks=8,
    ),
    "torchtune-qlora": Profile(
        "LoRA on 4-bit base weights of torchtune on one device, as for Llama 3.1 8B",
        "torchtune",
        "0.7.0",
        "recipes/configs/llama3_1/8B_qlora_single_device.yaml and recipes/lora_finetune_single_device.py",
        {**_TORCHTUNE_LORA, "load_in_4bit": True},
        f"{_TORCHTUNE_NOTE} The 4 bits there are torchao's, here those of bitsandbytes.",
        loss_chunks=8,
    ),
}
_NOT_OFFERED = {
    "unsloth": "its own kernels and the activations that it moves to the host's memory cannot be estimated; "
    "begin from `torchtune-qlora`"
}
"""Profiles that people look for, and why they would not be true here."""


def find(name: str) -> Profile:
    """Return the profile of that name. Raises SpecError of `like`, with the nearest names."""
    if name in PROFILES:
        return PROFILES[name]
    if name in _NOT_OFFERED:
        raise SpecError("like", f"{name} is not offered: {_NOT_OFFERED[name]}")
    nearest = get_close_matches(name.strip().lower(), PROFILES, n=2, cutoff=0.5)
    advice = f"did you mean {' or '.join(nearest)}?" if nearest else f"one of {', '.join(PROFILES)}"
    raise SpecError("like", f"{name[:80]!r} is not offered; {advice}")


def settings_like(name: str, given: Mapping[str, Any], workload: Workload, input_size: int) -> dict[str, Any]:
    """Return a profile's settings that are not given, as far as this model and precision have them."""
    profile = find(name)
    settings = dict(profile.settings)
    if profile.loss_chunks is not None:
        settings["loss_chunk_tokens"] = -(-input_size // profile.loss_chunks)
    if not workload.has_cache:
        settings.pop("without_cache", None)
    if given.get("precision", PURE_BF16) != PURE_BF16:
        settings.pop("lora_weights", None)
    return {setting: value for setting, value in settings.items() if setting not in given}


def of_profile(error: SpecError, profile: str, settings: Mapping[str, Any]) -> SpecError:
    name = error.field
    if name is None or name not in settings:
        return error
    other = f"give another {name}, or " if isinstance(settings[name], str) else ""
    return SpecError("like", f"{profile} has {name}, and {error.reason}; {other}leave the profile out")
