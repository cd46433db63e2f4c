"""The catalogue of workloads. Data only: `workloads.py` builds the models.

To add one: an entry here, its builder in `workloads.py`; docs/add_a_model.md walks through it.
`parameter_count` is checked against the real model by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Architecture = Literal["transformer", "cnn"]
"""What most of the memory goes to: how far estimates were off is known by it, and their margin follows from that."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One model with its task and the input shapes it takes."""

    id: str
    name: str
    description: str
    task: Literal["text-classification", "image-classification"]
    library: Literal["transformers", "torchvision"]
    architecture: Architecture
    parameter_count: int
    label_count: int
    default_input_size: int
    input_sizes: tuple[int, int]
    input_multiple_of: int = 1
    vocabulary_size: int | None = None
    has_gradient_checkpointing: bool = False
    huggingface_id: str | None = None

    @property
    def is_text(self) -> bool:
        return self.task == "text-classification"

    @property
    def input_field(self) -> str:
        """The setting that changes the input's size: a name of RunSpec."""
        return "sequence_length" if self.is_text else "image_size"


_ENTRIES = (
    Workload(
        id="bert",
        name="BERT base",
        description="Text encoder, 12 layers, fine-tuned to classify 2 classes",
        task="text-classification",
        library="transformers",
        architecture="transformer",
        parameter_count=109_483_778,
        label_count=2,
        default_input_size=128,
        input_sizes=(1, 512),
        vocabulary_size=30_522,
        has_gradient_checkpointing=True,
        huggingface_id="google-bert/bert-base-uncased",
    ),
    Workload(
        id="gpt2",
        name="GPT-2 small",
        description="Text decoder, 12 layers, fine-tuned to classify 2 classes",
        task="text-classification",
        library="transformers",
        architecture="transformer",
        parameter_count=124_441_344,
        label_count=2,
        default_input_size=128,
        input_sizes=(1, 1024),
        vocabulary_size=50_257,
        has_gradient_checkpointing=True,
        huggingface_id="openai-community/gpt2",
    ),
    Workload(
        id="resnet",
        name="ResNet-50",
        description="Convolutional image classifier, 50 layers, 1,000 classes",
        task="image-classification",
        library="transformers",
        architecture="cnn",
        parameter_count=25_557_032,
        label_count=1000,
        default_input_size=224,
        input_sizes=(33, 2048),  # at 32 one sample leaves batch norm one value per channel, and it refuses
        huggingface_id="microsoft/resnet-50",
    ),
    Workload(
        id="resnet18",
        name="ResNet-18",
        description="Small convolutional image classifier, 18 layers, 1,000 classes",
        task="image-classification",
        library="torchvision",
        architecture="cnn",
        parameter_count=11_689_512,
        label_count=1000,
        default_input_size=224,
        input_sizes=(33, 2048),  # at 32 one sample leaves batch norm one value per channel, and it refuses
    ),
    Workload(
        id="vit_b_16",
        name="ViT-B/16",
        description="Vision transformer, 12 layers, patches of 16 pixels, 1,000 classes",
        task="image-classification",
        library="torchvision",
        architecture="transformer",
        parameter_count=86_567_656,
        label_count=1000,
        default_input_size=224,
        input_sizes=(32, 1024),
        input_multiple_of=16,
    ),
    Workload(
        id="bert-tiny",
        name="BERT tiny",
        description="Text encoder, 2 layers of width 128: a first run in seconds, also on a CPU",
        task="text-classification",
        library="transformers",
        architecture="transformer",
        parameter_count=4_386_178,
        label_count=2,
        default_input_size=128,
        input_sizes=(1, 512),
        vocabulary_size=30_522,
        has_gradient_checkpointing=True,
        huggingface_id="google/bert_uncased_L-2_H-128_A-2",
    ),
    Workload(
        id="distilbert",
        name="DistilBERT",
        description="Text encoder, 6 layers, BERT's distilled half, 2 classes",
        task="text-classification",
        library="transformers",
        architecture="transformer",
        parameter_count=66_955_010,
        label_count=2,
        default_input_size=128,
        input_sizes=(1, 512),
        vocabulary_size=30_522,
        has_gradient_checkpointing=True,
        huggingface_id="distilbert/distilbert-base-uncased",
    ),
)

WORKLOADS: dict[str, Workload] = {entry.id: entry for entry in _ENTRIES}


def workload_ids() -> tuple[str, ...]:
    """Every offered id, the three of the classic contract first."""
    return tuple(WORKLOADS)
