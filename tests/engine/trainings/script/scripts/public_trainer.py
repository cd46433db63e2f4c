"""A Hugging Face Trainer whose script imports as public ones do: first what only looks for torch.

torchvision is left out: beside the CPU build of torch its compiled part does not load, and transformers imports it.
"""

import sys

sys.modules["torchvision"] = None

from transformers import (  # noqa: E402, I001 - the order in which such scripts import
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)
from accelerate.logging import get_logger  # noqa: E402

import torch  # noqa: E402

logger = get_logger(__name__)
torch.set_num_threads(1)
config = BertConfig(vocab_size=1_000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
rows = [{"input_ids": torch.randint(0, 1_000, (16,)), "labels": index % 2} for index in range(2_000)]
(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=rows).train()
