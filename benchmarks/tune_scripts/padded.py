"""Sequences of different lengths, padded to the longest of their batch: each batch has a peak of its own."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
lengths = torch.randint(8, 128, (5_000,), generator=torch.Generator().manual_seed(1))
data = [torch.randint(1, 1_000, (int(n),)) for n in lengths]


class Tagger(nn.Module):
    """Scores each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(1_000, 32), nn.Linear(32, 64), nn.Linear(64, 5)

    def forward(self, input_ids, attention_mask):
        return self.head(self.body(self.embedding(input_ids)).relu()) * attention_mask[..., None]


def collate(rows):
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return {"input_ids": ids, "attention_mask": ids.ne(0)}


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters())
for batch in torch.utils.data.DataLoader(data, batch_size=int(sys.argv[1]), shuffle=True, collate_fn=collate):
    optimizer.zero_grad()
    model(**batch).square().mean().backward()
    optimizer.step()
