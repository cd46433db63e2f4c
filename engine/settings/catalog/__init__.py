"""The catalogue of workloads: models, each with its task and its input sizes. Loads no torch.

Entries are data: one TOML file of this folder for each family, whose first lines hold for all its models. To add one:
docs/add_a_model.md. `parameter_count` is the published one, and a test holds the built model to it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Architecture = Literal["transformer", "cnn", "mixture_of_experts"]
"""The classes of networks for which the errors of estimates are known, and so their margins."""

Task = Literal[
    "text-classification",
    "text-generation",
    "text2text-generation",
    "image-classification",
    "image-segmentation",
    "object-detection",
    "automatic-speech-recognition",
    "image-text-matching",
    "text-to-image",
]
"""The tasks, with the Hugging Face hub's names. The task decides the batches and the loss."""

TASK_LABELS: dict[Task, str] = {
    "text-classification": "Text: classification",
    "text-generation": "Text: language models",
    "text2text-generation": "Text to text",
    "image-classification": "Images: classification",
    "image-segmentation": "Images: segmentation",
    "object-detection": "Images: detection",
    "automatic-speech-recognition": "Speech to text",
    "image-text-matching": "Images with texts",
    "text-to-image": "Text to image",
}
_COUNTED_IN_TOKENS = ("text-classification", "text-generation", "text2text-generation", "automatic-speech-recognition")
_DECODED = ("text-generation", "text2text-generation", "automatic-speech-recognition")
_CLASSIC = ("bert", "gpt2", "resnet")
"""The models of the classic contract, which are listed first."""
_FAMILY_NAME = re.compile(r"[A-Za-z]+?(?=[\d_]|For[A-Z]|LMHead|Model|$)")


@dataclass(frozen=True, slots=True)
class Workload:
    """One model with its task and its input shapes.

    `model_class` is a class of transformers or diffusers, whose `config_class` takes `config`, or a constructor of
    torchvision, which takes `config` itself; `sized_by` is the key of `config` that is set to the input size.
    `target_length` is the number of tokens of a text beside the input (CLIP, the UNet) or that the model writes (T5).
    `block_count` is the number of blocks in its only stack of layers or stages; 0 where it has several stacks, or none.
    `attentions` are the implementations that transformers has for it.
    """

    id: str
    name: str
    description: str
    task: Task
    library: Literal["transformers", "torchvision", "diffusers"]
    architecture: Architecture
    parameter_count: int
    model_class: str
    default_input_size: int
    input_sizes: tuple[int, int]
    config_class: str = ""
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sized_by: str | None = None
    label_count: int | None = None
    vocabulary_size: int | None = None
    target_length: int | None = None
    input_multiple_of: int = 1
    block_count: int = 0
    attentions: tuple[str, ...] = ()
    has_gradient_checkpointing: bool = False
    has_eval_loss: bool = True
    has_cpu_estimate: bool = True
    huggingface_id: str | None = None

    @property
    def library_has_checkpointing(self) -> bool:
        """Whether its library implements checkpointing for it; otherwise the engine does."""
        if self.library == "transformers":
            return self.architecture != "cnn"  # it has none for convolutional networks
        return self.library == "diffusers"

    @property
    def family(self) -> str:
        """Return the common beginning of class names of its kind: "qwen" of every version and size."""
        found = _FAMILY_NAME.match(self.model_class.rpartition(".")[2])
        return found[0].casefold() if found else self.id

    @property
    def is_text(self) -> bool:
        return self.task in _COUNTED_IN_TOKENS

    @property
    def has_cache(self) -> bool:
        """Whether it has a decoder of transformers, whose key-value cache is filled in training too."""
        decodes = self.task in _DECODED or self.model_class.startswith("GPT2")
        return self.library == "transformers" and decodes

    @property
    def has_large_outputs(self) -> bool:
        return self.has_cache or self.task == "image-segmentation"

    @property
    def has_config_of_decoder(self) -> bool:
        """Whether its decoder, which stands beside an encoder, may have a copy of the config."""
        return self.task == "text2text-generation"

    @property
    def window_tokens(self) -> int | None:
        """Return the length from which on a decoder's layers attend to a window only, by a mask; else None."""
        window = self.config.get("sliding_window") if self.config.get("use_sliding_window", True) else None
        return window if isinstance(window, int) and window <= self.input_sizes[1] else None

    @property
    def input_field(self) -> str:
        return "sequence_length" if self.is_text else "image_size"


def _entries() -> Iterator[Workload]:
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        family = tomllib.loads(path.read_text())
        for entry in family.pop("model"):
            fields: dict[str, Any] = {}
            for key, value in (family | entry).items():
                fields[key] = tuple(value) if isinstance(value, list) else value
            yield Workload(**fields)


def _order(workload: Workload) -> tuple[int, int]:
    classic = _CLASSIC.index(workload.id) if workload.id in _CLASSIC else len(_CLASSIC)
    return classic, list(TASK_LABELS).index(workload.task)


WORKLOADS: dict[str, Workload] = {entry.id: entry for entry in sorted(_entries(), key=_order)}


def workload_ids() -> tuple[str, ...]:
    """Return every offered id, the three of the classic contract first."""
    return tuple(WORKLOADS)
