"""Trains a causal language model on a text file with a Trainer, its imports in the order of `run_clm.py`.

Takes the arguments of a Trainer. datasets, evaluate and transformers look for torch before anything imports it.
"""

import without_network  # noqa: F401, I001 - first, then in the public order

import logging
import sys
from dataclasses import dataclass, field
from itertools import chain

import datasets
import evaluate
from datasets import load_dataset

import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)
from transformers.testing_utils import CaptureLogger

import torch
from small_texts import save_causal_model, save_lines

logger = logging.getLogger(__name__)
torch.set_num_threads(1)


@dataclass
class DataArguments:
    """What to train on."""

    block_size: int = field(default=32)


def main():
    parser = HfArgumentParser((DataArguments, TrainingArguments))
    data_arguments, arguments = parser.parse_args_into_dataclasses()
    logging.basicConfig(handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
    logger.info("%s %s", evaluate.__version__, datasets.__version__)
    set_seed(arguments.seed)
    model_name = save_causal_model(arguments.output_dir)
    files = {"train": save_lines(arguments.output_dir, 4_000)}
    raw = load_dataset("text", data_files=files, cache_dir=arguments.output_dir)
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model_name))

    def tokenize(examples):
        with CaptureLogger(transformers.utils.logging.get_logger("transformers.tokenization_utils_base")):
            return tokenizer(examples["text"])

    def group(examples):
        whole = {name: list(chain(*parts)) for name, parts in examples.items()}
        size = data_arguments.block_size
        length = len(whole["input_ids"]) // size * size
        blocks = {name: [ids[at : at + size] for at in range(0, length, size)] for name, ids in whole.items()}
        return blocks | {"labels": list(blocks["input_ids"])}

    with arguments.main_process_first(desc="tokenizing"):
        tokenized = raw.map(tokenize, batched=True, remove_columns=["text"])
        blocks = tokenized.map(group, batched=True)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=blocks["train"],
        processing_class=tokenizer,
        data_collator=default_data_collator,
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
