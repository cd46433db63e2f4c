"""A Hugging Face Trainer with a batch size in its arguments."""

import sys

import torch

from engine.measurement.torchvision_schemas import import_torchvision

import_torchvision()  # beside the CPU build of torch its compiled part does not load, and transformers needs it

from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments  # noqa: E402

torch.set_num_threads(1)
config = BertConfig(vocab_size=1_000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)


class Rows(torch.utils.data.Dataset):
    """Random rows of 16 tokens."""

    def __len__(self):
        return 5_000

    def __getitem__(self, index):
        return {"input_ids": torch.randint(0, 1_000, (16,)), "labels": index % 2}


arguments = TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=8,
    report_to=[],
    use_cpu=True,
    max_steps=1_000,
    disable_tqdm=True,
)
Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Rows()).train()
