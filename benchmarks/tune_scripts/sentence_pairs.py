"""Trains sentence embeddings on scored pairs, its imports in the order of the examples of sentence-transformers."""

import without_network  # noqa: F401, I001 - first, then in the public order

import logging
import sys

from datasets import Dataset

from sentence_transformers import SentenceTransformer, losses
from sentence_transformers.trainer import SentenceTransformerTrainer
from sentence_transformers.training_args import SentenceTransformerTrainingArguments

from small_texts import save_encoder, sentences

logging.basicConfig(level=logging.INFO)
batch_size, folder = int(sys.argv[1]), sys.argv[2]
lines = sentences(4_000, 16)
pairs = {"sentence1": lines, "sentence2": lines[::-1], "score": [number % 5 / 4 for number in range(len(lines))]}
model = SentenceTransformer(save_encoder(folder), device="cpu")
trainer = SentenceTransformerTrainer(
    model=model,
    args=SentenceTransformerTrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=batch_size,
        num_train_epochs=20,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=Dataset.from_dict(pairs),
    loss=losses.CosineSimilarityLoss(model=model),
)
trainer.train()
model.save(folder)
