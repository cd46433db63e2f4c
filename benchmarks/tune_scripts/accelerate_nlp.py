"""Classifies pairs of sentences with accelerate's loop, its imports in the order of `nlp_example.py`.

The batch size is written in it, as there.
"""

import without_network  # noqa: F401, I001 - first, then in the public order

import argparse

import evaluate
import torch
from datasets import Dataset
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup, set_seed

from accelerate import Accelerator

from small_texts import save_encoder, sentences

BATCH_SIZE = 16


def loader_of(accelerator, tokenizer):
    lines = sentences(4_000, 16)
    labels = [number % 2 for number in range(len(lines))]
    pairs = Dataset.from_dict({"one": lines, "two": lines[::-1], "labels": labels})
    with accelerator.main_process_first():
        rows = pairs.map(lambda each: tokenizer(each["one"], each["two"], truncation=True), batched=True)
        rows = rows.remove_columns(["one", "two"])

    def collate(examples):
        return tokenizer.pad(examples, padding="longest", return_tensors="pt")

    return DataLoader(rows, shuffle=True, collate_fn=collate, batch_size=BATCH_SIZE, drop_last=True)


def main():
    parser = argparse.ArgumentParser(description=f"A classifier (evaluate {evaluate.__version__}).")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("folder")
    args = parser.parse_args()
    accelerator = Accelerator(cpu=args.cpu)
    torch.set_num_threads(1)
    set_seed(42)
    model_name = save_encoder(args.folder)
    model = AutoModelForSequenceClassification.from_pretrained(model_name).to(accelerator.device)
    loader = loader_of(accelerator, AutoTokenizer.from_pretrained(model_name))
    optimizer = AdamW(params=model.parameters(), lr=2e-5)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=100, num_training_steps=len(loader))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for _ in range(100):
        model.train()
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    accelerator.end_training()


if __name__ == "__main__":
    main()
