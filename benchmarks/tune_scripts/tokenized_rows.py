"""A classifier of texts that are normalized, split and looked up in Python when their row is read."""

import random
import re
import sys
import unicodedata

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(1)
random.seed(1)
LENGTH = 128
WORDS = ["".join(random.choices("abcdefghijklmnopqrstuvwxyzäöüé", k=random.randint(2, 9))) for _ in range(5_000)]
NUMBERS = {word: number + 2 for number, word in enumerate(WORDS)}


class Reviews(Dataset):
    def __init__(self):
        self.texts = [" ".join(random.choices(WORDS, k=400)).title() + "!" for _ in range(2_000)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, number):
        text = unicodedata.normalize("NFKC", self.texts[number]).lower()
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        ids = [NUMBERS.get(word, 1) for word in re.findall(r"\w+|[^\w\s]", text)][:LENGTH]
        return {"input_ids": torch.tensor(ids + [0] * (LENGTH - len(ids))), "labels": torch.tensor(number % 2)}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(len(WORDS) + 2, 32, padding_idx=0)
        self.head = nn.Linear(32, 2)

    def forward(self, input_ids):
        return self.head(self.embedding(input_ids))


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(Reviews(), batch_size=int(sys.argv[1]), shuffle=True)
for _ in range(20):
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"]).backward()
        optimizer.step()
